//! Every bound of the server's edge, in one place (design rule 13). What is stored has its bounds in
//! the engine's `limits`.

use flotilla_engine::limits::{
    DEFINITION_BYTES_MAX, LABELS_MAX, MODULE_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    READ_BYTES_MAX, SLOTS_MAX,
};
use std::time::Duration;

/// A request's message. In bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Requests that one node has in hand at once; further ones are told to come back.
pub(crate) const REQUESTS_MAX: usize = 16_384;
/// How long a request that was turned away should wait.
pub(crate) const OVERLOAD_DELAY: Duration = Duration::from_millis(200);
/// Streams of one connection.
pub(crate) const CONNECTION_STREAMS_MAX: u32 = 4_096;
/// Connections over HTTP; further ones wait to be taken.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 512;
/// How long a connection over HTTP may take to send the headers of a request.
pub(crate) const HTTP_HEADERS_DEADLINE: Duration = Duration::from_secs(10);
/// How long a connection may take to agree on TLS.
pub(crate) const TLS_HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
/// Connections of gRPC that agree on TLS at a time; further ones wait to be taken.
pub(crate) const TLS_HANDSHAKES_MAX: usize = 512;
/// Refused callers that a node remembers, so that the log does not have each of their connections.
pub(crate) const TLS_REFUSALS_MAX: usize = 64;
/// How often the log says that the same caller is refused for the same reason.
pub(crate) const TLS_REFUSAL_INTERVAL: Duration = Duration::from_secs(60);
/// How long before its end the log says that the certificate in use ends.
pub(crate) const TLS_EXPIRY_NOTICE: Duration = Duration::from_secs(24 * 3_600);
/// How often the files of certificates are looked at.
pub(crate) const TLS_RELOAD_INTERVAL: Duration = Duration::from_secs(2);
/// A request's body over HTTP: a payload of any size, and what stands around it. In bytes.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + (16 << 10);
/// Actions that the metrics tell apart; the tasks of all others are counted together.
pub(crate) const METRIC_ACTIONS_MAX: usize = 100;
/// Rows of one table that are read for the metrics.
pub(crate) const METRIC_ROWS_MAX: usize = 100_000;
/// Leased tasks whose action is looked up for the metrics.
pub(crate) const METRIC_LEASES_MAX: usize = 10_000;
/// Callers that may wait for one kind of thing on one node.
pub(crate) const WATCHERS_MAX: usize = 10_000;
/// Updates that wait for the transport of one watcher.
pub(crate) const WATCH_UPDATES_MAX: usize = 64;
/// Events that a watcher reads at once.
pub(crate) const WATCH_EVENTS_MAX: usize = 100;

/// How deep a payload may nest.
pub(crate) const JSON_DEPTH_MAX: usize = 100;
/// Rows of a page when the request does not say, and at most.
pub(crate) const PAGE_ROWS_DEFAULT: u32 = 100;
/// See [`PAGE_ROWS_DEFAULT`].
pub(crate) const PAGE_ROWS_MAX: u32 = 1_000;
/// A page token. In bytes.
pub(crate) const PAGE_TOKEN_BYTES_MAX: usize = 4_096;

/// How long a request may take when it does not say.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// How long a request may take at most.
pub(crate) const DEADLINE_MAX: Duration = Duration::from_secs(3_600);
/// What is kept of the time that a caller gives, so that the answer still reaches it.
pub(crate) const DEADLINE_RESERVE_MAX: Duration = Duration::from_millis(250);
/// How long a caller may wait for an action run. In milliseconds.
pub(crate) const WAIT_MS_MAX: u64 = 300_000;
/// How long an invocation may be put off. In milliseconds.
pub(crate) const DELAY_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// How often a start is checked anew because its workflow changed meanwhile.
pub(crate) const START_TRIES_MAX: u32 = 8;

/// How long a node that has become the leader may take to open polls.
pub(crate) const TERM_BEGIN_MAX: Duration = Duration::from_secs(1);
/// How long a worker may take to say who it is.
pub(crate) const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Tasks that a worker may have in hand: twice its slots, since those that wait for the answer to
/// their report take none.
pub(crate) const HELD_TASKS_MAX: usize = 20_000;
/// Tasks at once when a worker does not say (the manual's default).
pub(crate) const CONCURRENCY_DEFAULT: u32 = 10;
/// A process's name, `stream/group` included, and the name of a worker's machine. In bytes.
pub(crate) const PROCESS_NAME_BYTES_MAX: usize = 2 * NAME_BYTES_MAX + 1;
/// Messages that wait for one worker's session; a worker that is slower than this loses its poll.
pub(crate) const POLL_MESSAGES_MAX: usize = 4_096;
/// The same in bytes: tasks wait without their inputs.
pub(crate) const POLL_BYTES_MAX: u32 = 8 << 20;
/// Messages that wait for the transport of one worker's stream.
pub(crate) const STREAM_MESSAGES_MAX: usize = 256;
/// The same in bytes: a few tasks of any size, or many small ones.
pub(crate) const STREAM_BYTES_MAX: u32 = 4 << 20;
/// Reports of one stream that may be under way before another message is heard, which may bring a batch more.
pub(crate) const REPORTS_UNDER_WAY_MAX: usize = 1_024;
/// Tasks in one message of a worker's stream.
pub(crate) const TASKS_BATCH_MAX: usize = 256;
/// With so many bytes of tasks a message is full: what clients take by default has room for it and one task more.
pub(crate) const TASKS_BATCH_BYTES: usize = 1 << 20;
/// Reports in one call, or in one message of a stream.
pub(crate) const REPORTS_BATCH_MAX: usize = 1_000;
/// How long a report on a stream may take before its worker is told to try again.
pub(crate) const REPORT_DEADLINE: Duration = Duration::from_secs(30);
/// How long a poll waits when it does not say (A22). In milliseconds.
pub(crate) const AWAIT_MS_DEFAULT: u64 = 30_000;
/// How long a poll waits at most (A22). In milliseconds.
pub(crate) const AWAIT_MS_MAX: u64 = 300_000;
/// What is granted to the leader beside the wait when a poll is passed on to it.
pub(crate) const AWAIT_RESERVE: Duration = Duration::from_secs(5);
/// The tasks of one poll's answer: what gRPC clients take by default. In bytes.
pub(crate) const AWAIT_BYTES_MAX: usize = 4 << 20;
/// A task on the wire: its input, its labels, and all else. In bytes.
const TASK_BYTES_MAX: usize =
    PAYLOAD_BYTES_MAX + LABELS_MAX * 2 * (NAME_BYTES_MAX + 8) + 16 * NAME_BYTES_MAX;
/// How long a node takes to connect to the leader, unless the leader is gone.
pub(crate) const LEADER_CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long one obligation's command may take before its driver looks at the state again.
pub(crate) const OBLIGATION_DEADLINE: Duration = Duration::from_secs(10);
/// How long a driver waits after a first refusal that time alone can mend.
pub(crate) const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
/// The same after many refusals in a row.
pub(crate) const RETRY_DELAY_MAX: Duration = Duration::from_secs(1);
/// Due timers of one kind that are fired together.
pub(crate) const TIMERS_BATCH_MAX: usize = 256;
/// Due schedules that are fired together.
pub(crate) const SCHEDULES_BATCH_MAX: usize = 256;
/// How long a schedule is left alone that this node's calendar does not know, or a trigger that this node
/// cannot fire.
pub(crate) const ASIDE_DELAY: Duration = Duration::from_secs(60);
/// How often in a row a trigger is refused, for reasons that time does not mend, before it is set aside.
pub(crate) const TRIGGER_REFUSALS_MAX: u32 = 5;
/// Triggers that are fired at once. With [`TRIGGER_FIRINGS_MAX`] it bounds the memory for their records.
pub(crate) const TRIGGERS_UNDER_WAY_MAX: usize = 8;
/// Partitions of a stream that a trigger fires at once, each with what one firing may take.
pub(crate) const TRIGGER_FIRINGS_MAX: usize = 4;
/// How often it is looked whether anything has expired, where nobody notices how long it stays.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// The pause between two pieces of what has expired, where nobody notices how long it stays: work that is
/// waited for goes first.
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Open checks of inputs that are read from the state at once.
pub(crate) const CHECKS_PAGE_MAX: usize = 1_000;
/// Checks of inputs that are under way at once.
pub(crate) const CHECKS_UNDER_WAY_MAX: usize = 64;
/// How long an embedded worker may be without a poll: a stream that broke is opened again sooner.
pub(crate) const ABSENCE_MAX: Duration = Duration::from_secs(3);

/// Compiled input schemas that a node keeps.
pub(crate) const SCHEMAS_CACHED_MAX: usize = 256;
/// A line of a definition that a finding quotes; longer ones are left out. In bytes.
pub(crate) const SOURCE_LINE_BYTES_MAX: usize = 500;
/// The message of a status. It travels in a header, and so do the violations. In bytes.
pub(crate) const STATUS_MESSAGE_BYTES_MAX: usize = 1_024;
/// The violations of a status together. In bytes.
pub(crate) const STATUS_VIOLATIONS_BYTES_MAX: usize = 4_096;

/// Pieces of a backup that wait for the transport, each about a megabyte.
pub(crate) const BACKUP_PARTS_AHEAD: usize = 4;
/// How long the caller of a backup may take none of them.
pub(crate) const BACKUP_STALL_MAX: Duration = Duration::from_secs(60);

/// How long a node that stops waits for its connections to end.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long a supervisor must give a node to stop, before it kills it: its parts, its connections and HTTP
/// each have their grace, and then the leadership is handed over and the state flushed. Killing it sooner loses
/// nothing; the next start then has the log to replay.
pub const STOP_TIME: Duration = Duration::from_secs(30);
const _: () = assert!(STOP_TIME.as_secs() >= 3 * STOP_GRACE.as_secs() + 10);

const _: () = assert!(MODULE_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < MESSAGE_BYTES_MAX);
// The records of all firings that are under way.
const _: () = assert!(
    TRIGGERS_UNDER_WAY_MAX as u64 * TRIGGER_FIRINGS_MAX as u64 * READ_BYTES_MAX <= 96 << 20
);
const _: () = assert!(HELD_TASKS_MAX >= 2 * SLOTS_MAX as usize);
const _: () = assert!(TASKS_BATCH_BYTES + TASK_BYTES_MAX < AWAIT_BYTES_MAX);
// One task, however large, passes through each of them.
const _: () = assert!(TASK_BYTES_MAX < AWAIT_BYTES_MAX);
const _: () = assert!(TASK_BYTES_MAX < STREAM_BYTES_MAX as usize);
// Clients take 16 KiB of headers by default. The message comes twice: percent-encoded, and with the
// violations in base64.
const _: () = assert!(
    STATUS_MESSAGE_BYTES_MAX * 3 + (STATUS_MESSAGE_BYTES_MAX + STATUS_VIOLATIONS_BYTES_MAX) * 3 / 2
        < 14 << 10
);
