//! The limits of the leader's parts (design rule 13). Stored data has its limits in the engine's `limits`.

use flotilla_engine::limits::READ_BYTES_MAX;
use std::time::Duration;

/// Messages that wait for one worker's session; a slower worker loses its poll.
pub(crate) const POLL_MESSAGES_MAX: usize = 4_096;
/// As [`POLL_MESSAGES_MAX`], in bytes: tasks wait without their inputs.
pub(crate) const POLL_BYTES_MAX: u32 = 8 << 20;
/// Tokens of one leased task that are kept from a hello. Some may be of earlier attempts.
pub(crate) const HELLO_TOKENS_PER_TASK_MAX: usize = 4;
/// How long one obligation's command may take before its driver reads the state again.
pub(crate) const OBLIGATION_DEADLINE: Duration = Duration::from_secs(10);
/// A driver's first backoff after a transient refusal.
pub(crate) const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
/// A driver's longest backoff after consecutive refusals.
pub(crate) const RETRY_DELAY_MAX: Duration = Duration::from_secs(1);
/// Due timers of one kind that are fired together.
pub(crate) const TIMERS_BATCH_MAX: usize = 256;
/// Due schedules that are fired together.
pub(crate) const SCHEDULES_BATCH_MAX: usize = 256;
/// How long a schedule or a trigger is deferred that this node cannot interpret or fire.
pub(crate) const DEFER_DELAY: Duration = Duration::from_secs(60);
/// After this many consecutive permanent refusals, a trigger is deferred.
pub(crate) const TRIGGER_REFUSALS_MAX: u32 = 5;
/// Triggers that fire concurrently. With [`TRIGGER_FIRINGS_MAX`], it bounds the memory for their
/// records.
pub(crate) const TRIGGERS_IN_FLIGHT_MAX: usize = 8;
/// Partitions of a stream that a trigger fires concurrently, each with the maximum of one firing.
pub(crate) const TRIGGER_FIRINGS_MAX: usize = 4;
/// How often the sweep looks for expired rows that no caller waits for.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// The pause between two batches of expired rows that no caller waits for: other work goes first.
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Open input checks that are read from the state in one batch.
pub(crate) const CHECKS_PAGE_MAX: usize = 1_000;
/// Input checks in flight.
pub(crate) const CHECKS_IN_FLIGHT_MAX: usize = 64;
/// How long an embedded worker may be without a poll; it reopens a broken stream sooner.
pub(crate) const ABSENCE_MAX: Duration = Duration::from_secs(3);
/// Compiled input schemas that a node keeps.
pub(crate) const SCHEMAS_CACHED_MAX: usize = 256;

// The records of all firings in flight.
const _: () = assert!(
    TRIGGERS_IN_FLIGHT_MAX as u64 * TRIGGER_FIRINGS_MAX as u64 * READ_BYTES_MAX <= 96 << 20
);
