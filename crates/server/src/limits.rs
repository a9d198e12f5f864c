//! Every bound of the server's edge, in one place (design rule 13). What is stored has its bounds in
//! the engine's `limits`.

use flotilla_engine::limits::{DEFINITION_BYTES_MAX, MODULE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use std::time::Duration;

/// A request's message. In bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Requests that one node has in hand at once; further ones are told to come back.
pub(crate) const REQUESTS_MAX: usize = 16_384;
/// How long a request that was turned away should wait.
pub(crate) const OVERLOAD_DELAY: Duration = Duration::from_millis(200);
/// Streams of one connection.
pub(crate) const CONNECTION_STREAMS_MAX: u32 = 4_096;
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

/// Compiled input schemas that a node keeps.
pub(crate) const SCHEMAS_CACHED_MAX: usize = 256;
/// A line of a definition that a finding quotes; longer ones are left out. In bytes.
pub(crate) const SOURCE_LINE_BYTES_MAX: usize = 500;
/// The message of a status. It travels in a header, and so do the violations. In bytes.
pub(crate) const STATUS_MESSAGE_BYTES_MAX: usize = 1_024;
/// The violations of a status together. In bytes.
pub(crate) const STATUS_VIOLATIONS_BYTES_MAX: usize = 4_096;

/// How long a node that stops waits for its connections to end.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);

const _: () = assert!(MODULE_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX < MESSAGE_BYTES_MAX);
// Clients take 16 KiB of headers by default. The message comes twice: percent-encoded, and with the
// violations in base64.
const _: () = assert!(
    STATUS_MESSAGE_BYTES_MAX * 3 + (STATUS_MESSAGE_BYTES_MAX + STATUS_VIOLATIONS_BYTES_MAX) * 3 / 2
        < 14 << 10
);
