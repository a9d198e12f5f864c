//! Every limit of the server's API, in one place (design rule 13). Stored data has its limits in
//! the engine's `limits`.

use flotilla_engine::limits::{
    ACTOR_GROUPS_BYTES_MAX, ACTOR_GROUPS_MAX, DEFINITION_BYTES_MAX, ENTRY_BYTES_MAX, LABELS_MAX,
    MODULE_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, READ_BYTES_MAX, SLOTS_MAX,
    STATE_BYTES_MAX,
};
use flotilla_replica::{FORWARD_BYTES_MAX, SNAPSHOTS_BYTES_MAX};
use flotilla_wasm::{CODE_BYTES_MAX, COMPILE_CPU_SECONDS_MAX, COMPILE_MEMORY_BYTES_MAX};
use std::time::Duration;

/// A request's message. In bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// The minimum of `max_memory_bytes`. In bytes.
pub(crate) const MEMORY_BYTES_MIN: u64 = 256 << 20;
/// The memory that is reserved for the write buffers and the caches of the two databases. In bytes.
pub(crate) const DATABASES_BYTES: u64 = 292 << 20;
/// The memory that is reserved for decoded records in the engine's cache. In bytes.
pub(crate) const RECORDS_BYTES: u64 = 128 << 20;
/// The memory that is reserved for entries that are being written, replicated or applied. In bytes.
pub(crate) const ENTRIES_BYTES: u64 = 64 << 20;
/// The memory that is reserved for commands that wait to be sent to the leader. In bytes.
pub(crate) const FORWARDS_BYTES: u64 = 32 << 20;
/// The memory that is reserved for snapshots that are sent and received. In bytes.
pub(crate) const SNAPSHOTS_BYTES: u64 = 40 << 20;
/// The memory that is reserved for large messages on workers' streams: one beyond the pool, and what the transport holds of
/// those that wait. In bytes.
pub(crate) const WAITING_MESSAGES_BYTES: u64 = 28 << 20;
/// The memory that is reserved for the program itself: its code, threads and tables. In bytes.
pub(crate) const PROGRAM_BYTES: u64 = 48 << 20;
/// The memory that is reserved before the node divides the rest. In bytes.
pub(crate) const FIXED_BYTES: u64 = DATABASES_BYTES
    + RECORDS_BYTES
    + ENTRIES_BYTES
    + FORWARDS_BYTES
    + SNAPSHOTS_BYTES
    + WAITING_MESSAGES_BYTES
    + PROGRAM_BYTES;
/// The least memory for requests in progress, even if their part of the node's memory is less. In bytes.
pub(crate) const REQUESTS_BYTES_MIN: usize = 32 << 20;
/// All requests in progress on one node, however much memory it has; further ones are shed. In bytes.
pub(crate) const REQUESTS_BYTES_MAX: usize = 1 << 30;
/// What a request counts for, beside its message. In bytes.
pub(crate) const REQUEST_BYTES: usize = 8 << 10;
/// How often a message may be in memory: as it arrived, decoded, and encoded for the log or the leader.
pub(crate) const MESSAGE_COPIES: usize = 3;
/// Requests that have arrived in part; for a further one, the oldest one is ended.
pub(crate) const PARTIAL_REQUESTS_MAX: usize = 512;
/// The least memory for open workers' streams, even if their part of the node's memory is less. In bytes.
pub(crate) const OPEN_STREAMS_BYTES_MIN: usize = 8 << 20;
/// The most memory for open workers' streams, regardless of the node's memory. In bytes.
pub(crate) const OPEN_STREAMS_BYTES_MAX: usize = 256 << 20;
/// What an open worker's stream counts for: its buffers, and a small message. In bytes.
pub(crate) const OPEN_STREAM_BYTES: usize = 24 << 10;
/// The least memory for messages that workers' streams have received, even if their part of the node's memory is less. In bytes.
pub(crate) const RECEIVED_MESSAGES_BYTES_MIN: usize = 8 << 20;
/// The most memory for messages that workers' streams have received, regardless of the node's memory. In bytes.
pub(crate) const RECEIVED_MESSAGES_BYTES_MAX: usize = 256 << 20;
/// A message up to this size never waits for streams of other connections. In bytes.
pub(crate) const SMALL_MESSAGE_BYTES_MAX: usize = 2 << 10;
/// A message on a worker's stream. In bytes.
pub(crate) const RECEIVED_MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Large messages on workers' streams that wait for memory; a further one ends its stream.
pub(crate) const MESSAGES_WAITING_MAX: usize = 64;
/// How long a message on a worker's stream may wait for memory.
pub(crate) const MESSAGE_MEMORY_WAIT_MAX: Duration = Duration::from_secs(8);
/// How long the one message that may be received beyond the pool may take.
pub(crate) const EXEMPT_RECEIVING_MAX: Duration = Duration::from_secs(4);
/// How long it may go without progress meanwhile.
pub(crate) const EXEMPT_STALL_MAX: Duration = Duration::from_secs(1);
/// When there are too many streams, the one that has waited longest for its first message ends, if it has waited this long.
pub(crate) const FIRST_MESSAGE_WAIT_MIN: Duration = Duration::from_secs(1);
/// The least memory for unsent responses and stream messages, even if their part of the node's memory is less. In bytes.
pub(crate) const RESPONSES_BYTES_MIN: usize = 32 << 20;
/// The most memory for unsent responses and stream messages, regardless of the node's memory. In bytes.
pub(crate) const RESPONSES_BYTES_MAX: usize = 1 << 30;
/// What a unary response counts for, beside its message. In bytes.
pub(crate) const RESPONSE_BYTES: usize = 512;
/// A response uses its request's memory if that is at least the bytes needed divided by this.
pub(crate) const REQUEST_MEMORY_DIVISOR: usize = 4;
/// A response is sent in chunks of at most this size. In bytes.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;
/// How often a response may be in memory: as a message, and encoded.
pub(crate) const RESPONSE_COPIES: usize = 2;
/// The least memory for unsent results of watches, even if their part of the node's memory is less. In bytes.
pub(crate) const VIEWS_BYTES_MIN: usize = 16 << 20;
/// The most memory for unsent results of watches, regardless of the node's memory. In bytes.
pub(crate) const VIEWS_BYTES_MAX: usize = 256 << 20;
/// The memory that a watch reserves for a read until all of its result is sent. In bytes.
pub(crate) const VIEW_BYTES_MAX: usize = 4 << 20;
/// The least memory for reads in progress, even if their part of the node's memory is less. In bytes.
pub(crate) const READS_BYTES_MIN: usize = 8 << 20;
/// The most memory for reads in progress, regardless of the node's memory. In bytes.
pub(crate) const READS_BYTES_MAX: usize = 256 << 20;
/// The memory that a read of many or large rows reserves: its result, and the record that it decodes. In bytes.
pub(crate) const READ_RESERVATION_BYTES: usize = 2 * VIEW_BYTES_MAX;
/// A caller that has read nothing of a response for this long is disconnected if others need its memory.
pub(crate) const UNREAD_MAX: Duration = Duration::from_secs(5);
/// How often the node looks for callers that do not read, while responses wait for memory.
pub(crate) const UNREAD_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The least memory for commands that wait for the leader's next entries, even if their part of the node's memory is
/// less. In bytes.
pub(crate) const QUEUE_BYTES_MIN: usize = 2 * ENTRY_BYTES_MAX;
/// Commands that wait for the leader's next entries, however much memory the node has. In bytes.
pub(crate) const QUEUE_BYTES_MAX: usize = 128 << 20;
/// How long a request that is one message, or a message of a stream, may take to arrive.
pub(crate) const RECEIVING_MAX: Duration = Duration::from_secs(30);
/// How long the caller of a shed request should wait.
pub(crate) const OVERLOAD_DELAY: Duration = Duration::from_millis(200);
/// Slow commands that are logged in one [`SLOW_COMMANDS_INTERVAL`].
pub(crate) const SLOW_COMMANDS_MAX: usize = 10;
/// See [`SLOW_COMMANDS_MAX`].
pub(crate) const SLOW_COMMANDS_INTERVAL: Duration = Duration::from_secs(1);
/// Concurrent gRPC streams of one connection.
pub(crate) const CONNECTION_STREAMS_MAX: u32 = 4_096;
/// Connections over HTTP. For a further one, the oldest one without a request in progress is closed.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 4_096;
/// Connections over HTTP on which no whole request of the API has arrived; for a further one, the oldest one is closed.
pub(crate) const HTTP_IDLE_CONNECTIONS_MAX: usize = 512;
/// How long a stream of events may be silent before a comment shows that it is open.
pub(crate) const EVENT_STREAM_SILENCE_MAX: Duration = Duration::from_secs(25);
/// What is read of a request over HTTP before its caller is checked. In bytes.
pub(crate) const UNCHECKED_BODY_BYTES_MAX: usize = 64 << 10;
/// What is read ahead, or waits to be sent, on a connection over HTTP. In bytes.
pub(crate) const HTTP_BUFFER_BYTES_MAX: usize = 64 << 10;
/// The path and the query of a request over HTTP. In bytes.
pub(crate) const URI_BYTES_MAX: usize = 8 << 10;
/// The parameters in the query of a request over HTTP.
pub(crate) const QUERY_PARAMETERS_MAX: usize = 64;
/// How long the client of a connection over HTTP may read nothing of its response before the connection is closed.
pub(crate) const HTTP_WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// The headers of a request over HTTP/2. In bytes.
pub(crate) const HTTP_HEADERS_BYTES_MAX: u32 = 16 << 10;
/// Flow control: the unread bytes that a caller may send on one stream of an HTTP/2 connection.
pub(crate) const HTTP_STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Flow control: the unread bytes on all streams of an HTTP/2 connection.
pub(crate) const HTTP_CONNECTION_WINDOW_BYTES: u32 = 128 << 10;
/// Concurrent streams of one HTTP/2 connection.
pub(crate) const HTTP_STREAMS_MAX: u32 = 256;
/// How often a node pings the client of an HTTP/2 connection, and how long the client may take to respond.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(10);
/// How long an HTTP connection may take to send the headers of a request.
pub(crate) const HTTP_HEADERS_DEADLINE: Duration = Duration::from_secs(10);
/// How long a TLS handshake may take, or the first byte of a connection without TLS.
pub(crate) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
/// Concurrent handshakes of a port for gRPC; for a further one, the oldest one is ended.
pub(crate) const HANDSHAKES_MAX: usize = 512;
/// Connections of clients over gRPC. For a further one, the oldest one on which no call was permitted yet is closed.
pub(crate) const CLIENT_CONNECTIONS_MAX: usize = 16_384;
/// Connections of probes and operators at their separate port. For a further one, the oldest one on which no call was
/// permitted yet is closed.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 256;
/// Requests of operators at their separate port; further ones are shed. In bytes.
pub(crate) const ADMIN_BYTES_MAX: usize = 8 << 20;
/// Flow control: the unread bytes that a caller may send on one stream at the operators' port.
pub(crate) const ADMIN_STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Flow control: the unread bytes on all streams of a connection at the operators' port.
pub(crate) const ADMIN_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Concurrent streams of one connection at the operators' port.
pub(crate) const ADMIN_STREAMS_MAX: u32 = 128;
/// A request at the operators' port. In bytes.
pub(crate) const ADMIN_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Connections of members. For a further one, the oldest one on which no call was permitted yet is closed.
pub(crate) const PEER_CONNECTIONS_MAX: usize = 1_024;
/// A process that did not run for this long closes the connections that it accepted before.
pub(crate) const SUSPENSION_MIN: Duration = Duration::from_secs(5);
/// The part of the process's open files that connections of one port may take: one in this many.
pub(crate) const FILES_PER_CONNECTION: u64 = 8;
/// Rejected callers that a node remembers, so that it does not log each of their connections.
pub(crate) const TLS_REFUSALS_MAX: usize = 64;
/// How often the log repeats that the same caller is rejected for the same reason.
pub(crate) const TLS_REFUSAL_INTERVAL: Duration = Duration::from_secs(60);
/// How long before its end the log warns that the certificate in use expires.
pub(crate) const TLS_EXPIRY_NOTICE: Duration = Duration::from_secs(24 * 3_600);
/// How often the certificate files are checked for changes.
pub(crate) const TLS_RELOAD_INTERVAL: Duration = Duration::from_secs(2);
/// How often a node reports which API tokens callers have shown.
pub(crate) const TOKEN_USES_INTERVAL: Duration = Duration::from_secs(10);
/// How often the file of the keyring is checked for changes.
pub(crate) const KEYRING_RELOAD_INTERVAL: Duration = Duration::from_secs(2);
/// The body of an HTTP request: a payload and a state patch of maximum size, and their envelope. In bytes.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + STATE_BYTES_MAX + (16 << 10);
/// Actions that have their own series in the metrics; the tasks of all others are counted together.
pub(crate) const METRIC_ACTIONS_MAX: usize = 100;
/// How long a page of metrics is reused for later callers, because each new page reads tables.
pub(crate) const METRICS_PAGE_REUSE_MAX: Duration = Duration::from_secs(1);
/// Rows of one table that are read for the metrics.
pub(crate) const METRIC_ROWS_MAX: usize = 100_000;
/// Leased tasks whose action is looked up for the metrics.
pub(crate) const METRIC_LEASES_MAX: usize = 10_000;
/// Callers that may wait for one kind of event on one node. Above that, each namespace may still have its share of them.
pub(crate) const WATCHERS_MAX: usize = 10_000;
/// Updates that wait for the transport of one watcher.
pub(crate) const WATCH_UPDATES_MAX: usize = 64;
/// Events that a watcher reads in one batch.
pub(crate) const WATCH_EVENTS_MAX: usize = 100;

/// Rows of a page if the request does not say.
pub(crate) const PAGE_ROWS_DEFAULT: u32 = 100;
/// Rows of a page at most.
pub(crate) const PAGE_ROWS_MAX: u32 = 1_000;
/// A page token. In bytes.
pub(crate) const PAGE_TOKEN_BYTES_MAX: usize = 4_096;
/// The maximum number of rows in each section of an inspection.
pub(crate) const INSPECTION_ROWS_MAX: u32 = 100;
/// The number of rows in each section if the caller sets no limit.
pub(crate) const INSPECTION_ROWS_DEFAULT: u32 = 20;

/// The timeout of a request without one.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// The longest timeout of a request.
pub(crate) const DEADLINE_MAX: Duration = Duration::from_secs(3_600);
/// The part of a caller's timeout that is reserved for the response to reach it.
pub(crate) const DEADLINE_RESERVE_MAX: Duration = Duration::from_millis(250);
/// How long a caller may wait for an action run. In milliseconds.
pub(crate) const WAIT_MS_MAX: u64 = 300_000;
/// How long an invocation may be delayed. In milliseconds.
pub(crate) const DELAY_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// How often a start is checked again because its workflow changed meanwhile.
pub(crate) const START_TRIES_MAX: u32 = 8;

/// How long a new leader may take before it opens polls.
pub(crate) const TERM_BEGIN_MAX: Duration = Duration::from_secs(1);
/// How long a worker may take to send its hello.
pub(crate) const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Tasks that a worker may hold: twice its slots, since tasks whose reports have no response yet
/// take none.
pub(crate) const HELD_TASKS_MAX: usize = 20_000;
/// A worker's slots if it gives no number (the default of Flo's manual).
pub(crate) const CONCURRENCY_DEFAULT: u32 = 10;
/// A process's name, `stream/group` included, and the name of a worker's host. In bytes.
pub(crate) const PROCESS_NAME_BYTES_MAX: usize = 2 * NAME_BYTES_MAX + 1;
/// Messages that wait for the transport of one worker's stream.
pub(crate) const OUTGOING_MESSAGES_MAX: usize = 256;
/// As [`OUTGOING_MESSAGES_MAX`], in bytes: a few tasks of any size, or many small ones.
pub(crate) const OUTGOING_BYTES_MAX: u32 = 4 << 20;
/// Results of reports that wait until a slow worker reads, beyond [`OUTGOING_BYTES_MAX`]; with more,
/// its stream ends. In bytes.
pub(crate) const RESULTS_WAITING_BYTES_MAX: usize = 1 << 20;
/// Reports of one stream that may be in flight before another message is read, which may add a
/// batch.
pub(crate) const REPORTS_IN_FLIGHT_MAX: usize = 1_024;
/// Tasks in one message of a worker's stream.
pub(crate) const TASKS_BATCH_MAX: usize = 256;
/// A message with this many bytes of tasks is full: a client's default message limit has room for
/// it and one more task.
pub(crate) const TASKS_BATCH_BYTES: usize = 1 << 20;
/// Reports in one call, or in one message of a stream.
pub(crate) const REPORTS_BATCH_MAX: usize = 1_000;
/// How long a report on a stream may take before its worker is asked to retry.
pub(crate) const REPORT_DEADLINE: Duration = Duration::from_secs(30);
/// How long a poll waits if it does not say (A22). In milliseconds.
pub(crate) const AWAIT_MS_DEFAULT: u64 = 30_000;
/// How long a poll waits at most (A22). In milliseconds.
pub(crate) const AWAIT_MS_MAX: u64 = 300_000;
/// The leader's extra time, beyond the wait, for a poll that is forwarded to it.
pub(crate) const AWAIT_RESERVE: Duration = Duration::from_secs(5);
/// The tasks of one poll's response: the default message limit of gRPC clients. In bytes.
pub(crate) const AWAIT_BYTES_MAX: usize = 4 << 20;
/// A task on the wire: its input, its labels, and everything else. In bytes.
const TASK_BYTES_MAX: usize =
    PAYLOAD_BYTES_MAX + LABELS_MAX * 2 * (NAME_BYTES_MAX + 8) + 16 * NAME_BYTES_MAX;
/// The memory that is reserved for the next batch of tasks of a worker's stream. In bytes.
pub(crate) const TASKS_MEMORY_BYTES: usize = TASKS_BATCH_BYTES + TASK_BYTES_MAX;
/// How long a node tries to connect to the leader, unless the leader changes.
pub(crate) const LEADER_CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// The interval of keepalive pings to the leader while a poll or a stream of a worker is open, and their timeout.
pub(crate) const LEADER_KEEPALIVE: Duration = Duration::from_secs(2);

/// The WASM calls of one namespace leave the memory for such calls, divided by this number, to other namespaces.
pub(crate) const WASM_MEMORY_LEFT_DIVISOR: usize = 4;
/// The least memory for all calls of WASM actions: what one with the default limits may take. In bytes.
pub(crate) const WASM_MEMORY_BYTES_MIN: u64 = 24 << 20;
/// Modules that a node tries or compiles at the same time, if it has 2 GiB of memory or more.
pub(crate) const TRIALS_MAX: usize = 2;
/// The least memory that trying or compiling a module may take, even if a sixteenth of the node's memory is less. In bytes.
pub(crate) const COMPILATION_BYTES_MIN: usize = 128 << 20;
/// The most memory that trying or compiling a module may take, regardless of the node's memory. In bytes.
pub(crate) const COMPILATION_BYTES_MAX: usize = 256 << 20;
/// The least memory for cached compiled modules, even if a 32nd of the node's memory is less. In bytes.
pub(crate) const CODE_BYTES_MIN: usize = 32 << 20;
/// Modules that a node tries at the same time because they are being registered.
pub(crate) const REGISTRATION_TRIALS_MAX: usize = 1;
/// How long the trial of a module may take. It is ended sooner if it takes too much processor time.
pub(crate) const TRIAL_DEADLINE: Duration = Duration::from_secs(60);
/// What the child that tries a module may say. In bytes.
pub(crate) const TRIAL_OUTPUT_BYTES_MAX: u64 = 4_096;
/// Verdicts on modules that a node remembers.
pub(crate) const MODULE_VERDICTS_MAX: usize = 1_024;
/// How long a node remembers that a module cannot be compiled.
pub(crate) const MODULE_FAILURE_KEPT: Duration = Duration::from_secs(600);
/// Tasks beyond its slots that an embedded worker takes, because some may wait until their module is compiled.
pub(crate) const TASKS_PREPARING_MAX: usize = 32;

/// Lines that an action may log, on average.
pub(crate) const GUEST_LOG_LINES_PER_SECOND_MAX: u64 = 20;
/// Lines that an action may log quickly after it was quiet.
pub(crate) const GUEST_LOG_BURST_LINES_MAX: u64 = 256;
/// What an action may log, on average. In bytes.
pub(crate) const GUEST_LOG_BYTES_PER_SECOND_MAX: u64 = 8 << 10;
/// What an action may log quickly after it was quiet. In bytes.
pub(crate) const GUEST_LOG_BURST_BYTES_MAX: u64 = 64 << 10;
/// All actions of a node together may log as much as this many of them.
pub(crate) const GUEST_LOG_NODE_FACTOR: u64 = 10;
/// Actions whose rate of log lines a node remembers.
pub(crate) const GUEST_LOG_ACTIONS_MAX: usize = 1_024;

/// A line of a definition that a finding quotes; longer ones are omitted. In bytes.
pub(crate) const SOURCE_LINE_BYTES_MAX: usize = 500;
/// The message of a status. It travels in a header, as the violations do. In bytes.
pub(crate) const STATUS_MESSAGE_BYTES_MAX: usize = 1_024;
/// All violations of a status. In bytes.
pub(crate) const STATUS_VIOLATIONS_BYTES_MAX: usize = 4_096;

/// Parts of a backup that wait for the transport, each about a megabyte.
pub(crate) const BACKUP_PARTS_AHEAD: usize = 4;
/// How long the caller of a backup may go without reading.
pub(crate) const BACKUP_STALL_MAX: Duration = Duration::from_secs(60);

/// How long a stopping node waits for its connections to end.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long a supervisor must give a node to stop before it kills it: the node's parts, its
/// connections, HTTP and the port of operators each have their grace; then the state is
/// flushed. Killing it sooner loses nothing, but the next start has to replay the log.
pub const STOP_TIME: Duration = Duration::from_secs(30);
const _: () = assert!(STOP_TIME.as_secs() >= 4 * STOP_GRACE.as_secs() + 10);

// A read reserves enough for its result, whether that is a page or one record.
const _: () = assert!(READ_BYTES_MAX + PAYLOAD_BYTES_MAX as u64 <= VIEW_BYTES_MAX as u64);
const _: () = assert!(2 * MODULE_BYTES_MAX <= READ_RESERVATION_BYTES);
const _: () = assert!(READ_RESERVATION_BYTES <= READS_BYTES_MIN);
const _: () = assert!(MESSAGE_COPIES * ADMIN_MESSAGE_BYTES_MAX + REQUEST_BYTES <= ADMIN_BYTES_MAX);
// The transport allocates two buffers of 8 KiB for each stream.
const _: () = assert!(MESSAGE_COPIES * SMALL_MESSAGE_BYTES_MAX + (16 << 10) <= OPEN_STREAM_BYTES);
// The message that is received beyond the pool ends before the next one has waited too long. A hello that gets no memory
// ends as `overloaded`, before `HELLO_DEADLINE`.
const _: () = assert!(EXEMPT_RECEIVING_MAX.as_secs() < MESSAGE_MEMORY_WAIT_MAX.as_secs());
const _: () = assert!(MESSAGE_MEMORY_WAIT_MAX.as_secs() < HELLO_DEADLINE.as_secs());
// A message of a stream has room for the largest completion, and for the names of all tasks of a worker.
const _: () = assert!(PAYLOAD_BYTES_MAX + STATE_BYTES_MAX < RECEIVED_MESSAGE_BYTES_MAX);
const _: () = assert!(HELD_TASKS_MAX * 128 < RECEIVED_MESSAGE_BYTES_MAX);
const _: () = assert!(REGISTRATION_TRIALS_MAX < TRIALS_MAX);
const _: () = assert!(COMPILATION_BYTES_MAX == COMPILE_MEMORY_BYTES_MAX);
const _: () = assert!(CODE_BYTES_MIN == CODE_BYTES_MAX);
const _: () = assert!(FORWARDS_BYTES == FORWARD_BYTES_MAX as u64);
const _: () = assert!(SNAPSHOTS_BYTES == SNAPSHOTS_BYTES_MAX as u64);
const _: () = assert!(
    (MESSAGE_COPIES * RECEIVED_MESSAGE_BYTES_MAX + MESSAGES_WAITING_MAX * (256 << 10)) as u64
        == WAITING_MESSAGES_BYTES
);
const _: () = assert!(TRIAL_DEADLINE.as_secs() > COMPILE_CPU_SECONDS_MAX);
const _: () = assert!(MODULE_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < MESSAGE_BYTES_MAX);
// Any request fits, even on the smallest node, and even if as many as possible have arrived in part.
const _: () = assert!(
    MESSAGE_COPIES * MESSAGE_BYTES_MAX + (PARTIAL_REQUESTS_MAX + 1) * REQUEST_BYTES
        <= REQUESTS_BYTES_MIN
);
// New work may use half of the queue.
const _: () = assert!(QUEUE_BYTES_MIN >= 2 * ENTRY_BYTES_MAX);
const _: () = assert!(HELD_TASKS_MAX >= 2 * SLOTS_MAX as usize);
const _: () = assert!(TASKS_BATCH_BYTES + TASK_BYTES_MAX < AWAIT_BYTES_MAX);
// One task, however large, passes each of them.
const _: () = assert!(TASK_BYTES_MAX < AWAIT_BYTES_MAX);
const _: () = assert!(TASK_BYTES_MAX < OUTGOING_BYTES_MAX as usize);
// Clients accept 16 KiB of headers by default. The message appears twice: percent-encoded, and with
// the violations in base64.
const _: () = assert!(
    STATUS_MESSAGE_BYTES_MAX * 3 + (STATUS_MESSAGE_BYTES_MAX + STATUS_VIOLATIONS_BYTES_MAX) * 3 / 2
        < 14 << 10
);

/// The credential that a call shows, with the word `Bearer` (X8). In bytes.
pub(crate) const CREDENTIAL_BYTES_MAX: usize = 8 << 10;
/// Unknown credentials from one address per second, after which a node checks no further ones for the rest of it (X9).
pub(crate) const BAD_CREDENTIALS_PER_ADDRESS_MAX: u32 = 20;
/// Credentials per second that a node does not know and therefore checks with the cluster (X9).
pub(crate) const CREDENTIAL_CHECKS_MAX: u32 = 1_000;
/// How long a node remembers calls without a token (X5).
pub(crate) const CALLS_WITHOUT_TOKEN_MEMORY: Duration = Duration::from_secs(60 * 60);
/// Combinations of address and permission that a node counts separately in five minutes, of calls without a token (X5).
pub(crate) const CALLERS_WITHOUT_TOKEN_MAX: usize = 1_024;

/// Issuers of tokens (X12).
pub(crate) const OIDC_ISSUERS_MAX: usize = 16;
/// The maximum of `max_ttl_s`: a year, in seconds (X12).
pub(crate) const OIDC_TTL_SECONDS_MAX: u64 = 365 * 24 * 60 * 60;
/// How long a node waits for the keys of an issuer (X13).
pub(crate) const OIDC_FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The headers of a response with keys (X13). In bytes.
pub(crate) const OIDC_HEADERS_BYTES_MAX: usize = 64 << 10;
/// How long fetched keys are used before they are fetched again (X13).
pub(crate) const OIDC_KEYS_FRESH: Duration = Duration::from_secs(5 * 60);
/// How long fetched keys are used if they cannot be fetched again (X13).
pub(crate) const OIDC_KEYS_STALE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a node reads keys from a file (X13).
pub(crate) const OIDC_FILE_INTERVAL: Duration = Duration::from_secs(10);
/// How often tokens of unknown keys make a node fetch keys, and how often it tries again after a failure (X13).
pub(crate) const OIDC_REFETCH_INTERVAL: Duration = Duration::from_secs(10);
/// Tokens of issuers that a node has verified and remembers (X9).
pub(crate) const VERIFIED_TOKENS_MAX: usize = 16_384;
/// As [`VERIFIED_TOKENS_MAX`], in bytes.
pub(crate) const VERIFIED_TOKENS_BYTES_MAX: usize = 8 << 20;
/// How often a node logs that it refuses the token of a caller (X13).
pub(crate) const BAD_TOKEN_LOG_INTERVAL: Duration = Duration::from_secs(1);

// What a token proves fits into the actor of a command.
const _: () = assert!(flotilla_oidc::GROUPS_MAX == ACTOR_GROUPS_MAX);
const _: () = assert!(flotilla_oidc::GROUPS_BYTES_MAX == ACTOR_GROUPS_BYTES_MAX);
const _: () = assert!(flotilla_oidc::NAME_BYTES_MAX == NAME_BYTES_MAX);
