//! What an operator or a test may turn; the defaults are those of the design.

use std::time::Duration;

/// What an operator or a test may turn.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How often a leader is heard.
    pub heartbeat: Duration,
    /// A follower that hears no leader for a time between this and the next stands for election.
    pub election_min: Duration,
    /// See [`Tuning::election_min`].
    pub election_max: Duration,
    /// Entries that the batcher has under way at once.
    pub entries_in_flight: usize,
    /// New work that may wait for the batcher, in commands.
    pub intake_max: usize,
    /// What lets open work end and may wait for the batcher, in commands.
    pub progress_max: usize,
    /// What may wait for the batcher, in bytes; new work gets half of it.
    pub waiting_bytes_max: usize,
    /// A snapshot is made after so many bytes of log; each node uses its share of that.
    pub snapshot_log_bytes: u64,
    /// A snapshot is made when what a restart would replay took this long to apply; likewise.
    pub snapshot_replay: Duration,
    /// A log longer than this is cut even if a member still needs it; that member gets a snapshot.
    pub log_bytes_max: u64,
    /// With less free than this on the disk no new work is taken, and with less than half of it nothing
    /// is written that can be refused. 0: the disk is not looked at.
    pub disk_reserve_bytes: u64,
    /// Replicas compare digests after each entry whose index is a multiple of this. The same on
    /// every member.
    pub digest_interval: u64,
    /// How often snapshots and purges are considered.
    pub upkeep_interval: Duration,
    /// How long a follower may take to receive and install a snapshot.
    pub install_snapshot_timeout: Duration,
}

impl Tuning {
    /// How long a missing leader is taken for one that is being elected. An election takes about three
    /// times [`Tuning::election_min`] and rarely more than twice [`Tuning::election_max`].
    pub(crate) fn leader_patience(&self) -> Duration {
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
            log_bytes_max: 512 << 20,
            disk_reserve_bytes: 256 << 20,
            digest_interval: 1_024,
            upkeep_interval: Duration::from_secs(1),
            install_snapshot_timeout: Duration::from_secs(300),
        }
    }
}
