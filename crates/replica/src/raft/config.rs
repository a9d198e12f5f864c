//! openraft's timing and limits (docs/design.md, "Raft").

use crate::tuning::{Tuning, milliseconds};
use openraft::{Config, ConfigError, SnapshotPolicy};

/// The maximum of entries in one append; their size usually limits it first
/// (`LogStore::limited_get_log_entries`).
const PAYLOAD_ENTRIES_MAX: u64 = 256;
/// openraft must never prefer a snapshot while the log still has what a follower needs.
const REPLICATION_LAG_ENTRIES: u64 = 1 << 40;
/// The backoff for an unreachable peer.
const BACKOFF: &str = "50ms 100ms 200ms ...500ms";

/// The configuration for `tuning`.
///
/// # Errors
/// [`ConfigError`] for times that contradict each other.
pub(crate) fn config(tuning: &Tuning) -> Result<Config, ConfigError> {
    let election_max_ms = milliseconds(tuning.election_max);
    Config {
        cluster_name: "flotilla".to_owned(),
        heartbeat_interval: milliseconds(tuning.heartbeat),
        election_timeout_min: tuning.election_ms(),
        election_timeout_max: election_max_ms,
        // The default of 200 ms invites overlapping installs, a likely trigger of issue 2116.
        install_snapshot_timeout: milliseconds(tuning.install_snapshot_timeout),
        max_payload_entries: PAYLOAD_ENTRIES_MAX,
        replication_lag_threshold: REPLICATION_LAG_ENTRIES,
        // Snapshots are triggered by bytes and replay time, purges by the floor in the log.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        // A restarted leader would serve state that is not applied again yet.
        enable_leader_restore: Some(false),
        enable_pre_vote: Some(true),
        // A follower whose disk lost what it had acknowledged ends (`cluster/lost_tail.rs`), but the leader must not.
        // Without this, openraft would end it with debug assertions; in a release build, it would continue with an
        // inconsistent position.
        allow_log_reversion: Some(true),
        // Without this, bridge partitions deadlock.
        quorum_loss_probe_interval: Some(election_max_ms * 5 / 2),
        backoff: BACKOFF.to_owned(),
        ..Config::default()
    }
    .validate()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_tuning_is_accepted_and_is_what_the_design_says() {
        let config = config(&Tuning::default()).unwrap();
        assert_eq!(config.heartbeat_interval, 100);
        assert_eq!(
            (config.election_timeout_min, config.election_timeout_max),
            (300, 600)
        );
        assert_eq!(config.enable_leader_restore, Some(false));
        assert_eq!(config.enable_pre_vote, Some(true));
        assert_eq!(config.allow_log_reversion, Some(true));
        assert!(config.quorum_loss_probe_interval.unwrap() >= 2 * config.election_timeout_max);
    }
}
