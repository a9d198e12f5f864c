//! Tuning parameters for operators and tests; the defaults are those of the design.

use std::time::Duration;

/// Tuning parameters for operators and tests.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The interval of a leader's heartbeats.
    pub heartbeat: Duration,
    /// A follower without a heartbeat for a random time between this and the next stands for
    /// election.
    pub election_min: Duration,
    /// The upper end of the range that [`Tuning::election_min`] begins.
    pub election_max: Duration,
    /// Entries that the batcher has in flight.
    pub entries_in_flight: usize,
    /// New work that may be queued for the batcher, in commands.
    pub intake_max: usize,
    /// Commands that complete open work and may be queued for the batcher.
    pub progress_max: usize,
    /// The size of the queue, in bytes; new work gets half of it.
    pub waiting_bytes_max: usize,
    /// Snapshot after this many bytes of log; each node uses its share of it.
    pub snapshot_log_bytes: u64,
    /// Snapshot when a restart would take this long to replay; each node uses its share of it.
    pub snapshot_replay: Duration,
    /// A log longer than this is purged even if a member still needs it; that member gets a
    /// snapshot.
    pub max_log_bytes: u64,
    /// Below this much free disk space the node takes no new work, and below half of it writes
    /// nothing that can be refused. 0 disables the check.
    pub disk_reserve_bytes: u64,
    /// If a write to the log has not returned for this long, a leader transfers leadership.
    pub sync_yield: Duration,
    /// If a write to the log has not returned for this long, the replica ends.
    pub sync_timeout: Duration,
    /// Replicas compare digests after each entry whose index is a multiple of this. Must be equal
    /// on every member.
    pub digest_interval: u64,
    /// The interval at which snapshots and purges are considered.
    pub upkeep_interval: Duration,
    /// How long a follower may take to receive and install a snapshot.
    pub install_snapshot_timeout: Duration,
}

impl Tuning {
    /// The shortest [`Tuning::election_min`], for a local network.
    pub const ELECTION_MIN: Duration = Duration::from_millis(300);
    /// The longest [`Tuning::election_min`]. Beyond it, fixed timeouts of calls between members would be too short.
    pub const ELECTION_MAX: Duration = Duration::from_secs(3);

    /// This tuning with `election` as its minimum election timeout: at least
    /// [`Tuning::ELECTION_MIN`], at most [`Tuning::ELECTION_MAX`]. A heartbeat and its response must arrive within a third of
    /// it.
    #[must_use]
    pub fn with_election(self, election: Duration) -> Self {
        Self {
            heartbeat: election / 3,
            election_min: election,
            election_max: election * 2,
            ..self
        }
    }

    /// [`Tuning::election_min`] in milliseconds. The other times of consensus follow from it.
    pub(crate) fn election_ms(&self) -> u64 {
        milliseconds(self.election_min)
    }

    /// How long a leader that stops waits for its successor.
    pub(crate) fn hand_over_timeout(&self) -> Duration {
        self.election_min * 5 / 3
    }

    /// How long a successor that has caught up takes to take over, with some reserve.
    pub(crate) fn take_over_time(&self) -> Duration {
        self.election_min * 5 / 6
    }

    /// How long a missing leader counts as being elected. An election takes about three times
    /// [`Tuning::election_min`] and rarely more than twice [`Tuning::election_max`].
    pub(crate) fn leader_timeout(&self) -> Duration {
        self.election_max * 5
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(300),
            election_max: Duration::from_millis(600),
            entries_in_flight: 4,
            intake_max: 8_192,
            progress_max: 32_768,
            waiting_bytes_max: 128 << 20,
            snapshot_log_bytes: 64 << 20,
            snapshot_replay: Duration::from_secs(10),
            max_log_bytes: 512 << 20,
            disk_reserve_bytes: 256 << 20,
            sync_yield: Duration::from_secs(5),
            sync_timeout: Duration::from_secs(60),
            digest_interval: 1_024,
            upkeep_interval: Duration::from_secs(1),
            install_snapshot_timeout: Duration::from_secs(300),
        }
    }
}

/// The duration in milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
