//! Cluster-wide state: the clock, the sequences and the leader's grace.

use super::{RequestUsage, tables};
use serde::{Deserialize, Serialize};

tables! {
    /// One row. Lives as long as the cluster.
    1 Cluster(()) -> ClusterRecord, HOT;
}

/// Time, sequences and the leader's grace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// The time of the last entry, in milliseconds; never goes back (design rule 1).
    pub now_ms: u64,
    /// The latest term that a leader has begun; 0 before the first.
    pub term: u64,
    /// Until when leases and missing heartbeats are tolerated after a change of leader (A4), in milliseconds.
    pub grace_until_ms: u64,
    /// The last number that was assigned to a run.
    pub run_count: u64,
    /// Action runs so far.
    pub action_runs_count: u64,
    /// The number of namespaces (A41).
    pub namespaces_count: u64,
    /// Workers so far.
    pub workers_count: u64,
    /// Definitions so far.
    pub definitions_count: u64,
    /// Plans that have been executed so far.
    pub plan_count: u64,
    /// Writes of keys so far (A40).
    pub key_versions_count: u64,
    /// Streams so far.
    pub streams_count: u64,
    /// The last number that was assigned to a consumer group.
    pub group_count: u64,
    /// Concurrency keys so far (W84).
    pub concurrency_keys_count: u64,
    /// Locks so far (W85).
    pub locks_count: u64,
    /// The index of an entry: no request id that is remembered was accepted earlier (design rule 9).
    pub requests_first: u64,
    /// The request ids that are remembered, of all namespaces.
    pub requests: RequestUsage,
    /// No retained item expires before this time, in milliseconds (W4): a sweep begins here and skips the tombstones of
    /// deleted rows.
    pub expirations_from_ms: u64,
    /// Commands that panicked (design rule 10).
    pub panics_count: u64,
    /// Scopes that have a quota (X37).
    pub quotas_count: u64,
    /// Changes of quotas so far.
    pub quota_versions_count: u64,
}
