//! Every bound of the engine, in one place (design rule 13).
//!
//! A value over a bound is refused with a clear message before proposal; the engine checks again
//! those that its own work can exceed.

/// A payload: a run's input, a step's output, a signal's content. In bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// The text of a definition (W1). In bytes.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// A WASM module. In bytes.
pub const MODULE_BYTES_MAX: usize = 4 << 20;
/// What one log entry may hold before another is begun. In bytes.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// Commands in one log entry.
pub const ENTRY_COMMANDS_MAX: usize = 1_024;
/// Offers in one log entry (design rule 3).
pub const ENTRY_OFFERS_MAX: usize = 256;

/// Names of workflows, actions, plans and steps (W0, A1). In bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Outcomes (W11). In bytes.
pub const OUTCOME_BYTES_MAX: usize = 64;
/// Namespaces (A41). In bytes.
pub const NAMESPACE_BYTES_MAX: usize = 63;
/// A reason, error message or detail that is kept; longer ones are cut. In bytes.
pub const MESSAGE_BYTES_MAX: usize = 4_096;

/// Steps that a run may take between two waits (W16).
pub const ADVANCE_STEPS_MAX: u32 = 256;
/// Children within children (W17).
pub const NESTING_MAX: u16 = 16;
/// Steps in a definition.
pub const STEPS_MAX: usize = 4_096;
/// Signals that one run may get in all.
pub const SIGNALS_MAX: u32 = 10_000;
/// Events in a run's history before its middle is trimmed (design rule 13).
pub const HISTORY_EVENTS_MAX: u64 = 10_000;
/// Events at the start of a history that trimming keeps.
pub const HISTORY_HEAD_EVENTS: u64 = 100;

/// Attempts of an action or step (E401).
pub const ATTEMPTS_MAX: u32 = 1_000;
/// The delay before an action's retry is capped here (A1). In milliseconds.
pub const ACTION_RETRY_DELAY_MS_MAX: u64 = 3_600_000;
/// An action's timeout, and how far one touch extends a lease. In milliseconds.
pub const LEASE_MS_MAX: u64 = 24 * 3_600_000;
/// Labels of a worker or action run (A3).
pub const LABELS_MAX: usize = 64;
/// Processes (actions) that one worker may list.
pub const PROCESSES_MAX: usize = 1_024;
/// Slots that one worker may offer at once.
pub const SLOTS_MAX: u32 = 10_000;
/// Workers in one namespace (A20).
pub const WORKERS_MAX: u64 = 10_000;
/// Silence after which a worker is unhealthy (A20). In milliseconds.
pub const WORKER_SILENCE_MS_MAX: u64 = 90_000;
/// Grace that a new leader gives to every lease and worker (A4). In milliseconds.
pub const LEADER_GRACE_MS: u64 = 10_000;
/// Finished runs are kept this long by default (W4). In milliseconds.
pub const RETENTION_MS_DEFAULT: u64 = 7 * 24 * 3_600_000;

/// How long an accepted request id is remembered, at least (design rule 9). In milliseconds.
pub const REQUEST_WINDOW_MS: u64 = 10 * 60_000;
/// The width of a time bucket of request ids. In milliseconds.
pub const REQUEST_BUCKET_MS: u64 = REQUEST_WINDOW_MS / 2;

/// Request ids that are remembered at once.
pub const REQUESTS_MAX: u64 = 1_000_000;
/// Rows that one sweep deletes at most.
pub const SWEEP_ROWS_MAX: usize = 1_000;

/// Namespaces in a cluster (A41).
pub const NAMESPACES_MAX: usize = 1_024;
/// A value of the key-value store (A40). In bytes.
pub const KV_VALUE_BYTES_MAX: usize = 64 << 10;

/// Keys in one page of a scan: as many as fit with the largest values.
pub const KV_PAGE_KEYS_MAX: usize = (3 << 20) / KV_VALUE_BYTES_MAX;
/// Streams in a namespace (A30).
pub const STREAMS_MAX: usize = 10_000;
/// Partitions of a stream (A30).
pub const PARTITIONS_MAX: u32 = 64;
/// The hard byte limit of a stream when none is given (A32).
pub const STREAM_BYTES_DEFAULT: u64 = 1 << 30;
/// What a record counts beside its content: about what its row takes. In bytes.
pub const RECORD_BYTES_OVERHEAD: u64 = 32;
/// Records in one append (A30).
pub const APPEND_RECORDS_MAX: usize = 1_000;
/// The records of one append. In bytes.
pub const APPEND_BYTES_MAX: usize = 3 << 20;
/// Headers of a record (A30).
pub const HEADERS_MAX: usize = 64;
/// A header of a record, name and value. In bytes.
pub const HEADER_BYTES_MAX: usize = 4_096;
/// Records of one read when no number is given (A30).
pub const READ_RECORDS_DEFAULT: usize = 10;
/// Records of one read or of one delivery (A30).
pub const READ_RECORDS_MAX: usize = 1_000;
/// The records of one read or of one delivery, unless one alone is larger. In bytes.
pub const READ_BYTES_MAX: u64 = 3 << 20;
/// What one sweep of a stream removes at most. In bytes.
pub const SWEEP_BYTES_MAX: u64 = 16 << 20;

/// Consumer groups of a stream (A31).
pub const GROUPS_MAX: u32 = 256;
/// Consumers of a group (A31).
pub const CONSUMERS_MAX: u32 = 256;
/// Records that a group has in flight or waiting to be delivered again; past it no new one goes out.
pub const PENDING_MAX: u32 = 10_000;
/// How long a consumer has a record, when a group is created without saying (A31). In milliseconds.
pub const ACK_TIMEOUT_MS_DEFAULT: u64 = 30_000;
/// Deliveries of a record, when a group is created without saying (A31).
pub const DELIVERIES_DEFAULT: u32 = 10;
/// Runs that one firing of a trigger starts at most (W41): each advances within the firing's turn.
pub const TRIGGER_RUNS_MAX: usize = 32;
/// How often a sweep looks again at old records that a trigger still wants. In milliseconds.
pub const RETENTION_HELD_MS: u64 = 60_000;

const _: () = assert!(APPEND_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(ACK_TIMEOUT_MS_DEFAULT < WORKER_SILENCE_MS_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < APPEND_BYTES_MAX);
const _: () = assert!(HEADERS_MAX * HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX < APPEND_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(MODULE_BYTES_MAX < ENTRY_BYTES_MAX);
const _: () = assert!(HISTORY_HEAD_EVENTS < HISTORY_EVENTS_MAX);
const _: () = assert!(STEPS_MAX < u16::MAX as usize);
const _: () = assert!(REQUEST_WINDOW_MS.is_multiple_of(REQUEST_BUCKET_MS));
const _: () = assert!(LEADER_GRACE_MS < WORKER_SILENCE_MS_MAX);
