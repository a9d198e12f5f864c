//! The catalogue of all metrics: what a node exposes, what the manual lists and what the dashboard and
//! the alerts may name.

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, and begins anew when the node does, unless its help says otherwise.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations, in buckets.
    Histogram,
}

impl MetricKind {
    /// As Prometheus spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// The names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
    /// What it counts in.
    pub unit: &'static str,
    /// What it says, in a sentence or two.
    pub help: &'static str,
}

/// Makes a constant for each row, and the list of them all.
macro_rules! metrics {
    ($($constant:ident $kind:ident $name:literal [$($label:literal),*] $unit:literal $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(super) const $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
                unit: $unit,
                help: $help,
            };
        )*

        /// All metrics.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    NODE_INFO Gauge "flotilla_node_info" ["node_id", "version"] "1"
        "Which node this is and the version of its binary; always 1.";
    READY Gauge "flotilla_ready" [] "0 or 1"
        "1 while the node may serve: what `/readyz` says.";
    TLS_CERTIFICATE_EXPIRY Gauge "flotilla_tls_certificate_expiry_seconds" [] "seconds"
        "When the certificate that the node uses ceases to be valid, in seconds since the Unix epoch. On a node with TLS only.";

    RAFT_TERM Gauge "flotilla_raft_term" [] "terms"
        "The newest term that the node knows.";
    RAFT_IS_LEADER Gauge "flotilla_raft_is_leader" [] "0 or 1"
        "1 while the node leads and a quorum has answered it lately.";
    RAFT_LEADER_ID Gauge "flotilla_raft_leader_id" [] "node id"
        "The node that leads as far as this one knows; 0 while it knows none.";
    RAFT_MEMBERS Gauge "flotilla_raft_members" ["role"] "nodes"
        "Members of the cluster: `voter` or `learner`.";
    RAFT_LAST_LOG_INDEX Gauge "flotilla_raft_last_log_index" [] "index"
        "The last entry of the node's log.";
    RAFT_COMMITTED_INDEX Gauge "flotilla_raft_committed_index" [] "index"
        "The last entry that the node knows to be on a majority.";
    RAFT_APPLIED_INDEX Gauge "flotilla_raft_applied_index" [] "index"
        "The last entry that the node has applied.";
    RAFT_SNAPSHOT_INDEX Gauge "flotilla_raft_snapshot_index" [] "index"
        "The last entry that the node's snapshot covers.";
    RAFT_PURGED_INDEX Gauge "flotilla_raft_purged_index" [] "index"
        "The last entry that the node's log does not hold any more.";
    RAFT_COMMIT_LAG Gauge "flotilla_raft_commit_lag_entries" [] "entries"
        "Entries in the node's log that it does not know to be on a majority.";
    RAFT_APPLY_LAG Gauge "flotilla_raft_apply_lag_entries" [] "entries"
        "Entries that the node knows to be on a majority and has not applied.";
    RAFT_FOLLOWER_LAG Gauge "flotilla_raft_follower_lag_entries" ["peer"] "entries"
        "Entries of the leader's log that the member `peer` is not known to have. Exposed by the leader only.";
    RAFT_ELECTIONS Counter "flotilla_raft_elections_total" [] "terms"
        "Terms that have begun since the node first knew one.";
    RAFT_LEADER_CHANGES Counter "flotilla_raft_leader_changes_total" [] "changes"
        "Times that the node learnt of another leader than the one before.";
    RAFT_SNAPSHOTS Counter "flotilla_raft_snapshots_total" ["kind"] "snapshots"
        "Snapshots that were `made` of the node's state, and those of another member that it `installed`.";
    RAFT_LOG_SYNC Histogram "flotilla_raft_log_sync_seconds" [] "seconds"
        "How long it took to write what waited to the log and to make it durable.";
    RAFT_LOG_WRITTEN Counter "flotilla_raft_log_written_bytes_total" [] "bytes"
        "Entries written to the log.";
    RAFT_LOG_BYTES Gauge "flotilla_raft_log_bytes" [] "bytes"
        "The log, from its first entry to its last.";
    RAFT_DIGEST_CONFLICT Gauge "flotilla_raft_digest_conflict" [] "0 or 1"
        "1 once the node's state was found to differ from the majority's, or no majority agreed.";

    COMMANDS_WAITING Gauge "flotilla_commands_waiting" ["class"] "commands"
        "Commands that wait to be proposed: `intake` is new work, `progress` lets open work end. Only a leader has any.";
    COMMANDS_WAITING_BYTES Gauge "flotilla_commands_waiting_bytes" [] "bytes"
        "What the commands that wait to be proposed take.";
    COMMANDS_FORWARDED Counter "flotilla_commands_forwarded_total" [] "commands"
        "Attempts to have the leader carry out a command that came to this node.";
    COMMANDS_TURNED_AWAY Counter "flotilla_commands_turned_away_total" [] "commands"
        "Commands that came to this node and were refused because too many waited.";
    COMMANDS_PROPOSED Counter "flotilla_commands_proposed_total" [] "commands"
        "Commands that this node proposed as the leader.";
    ENTRIES_PROPOSED Counter "flotilla_entries_proposed_total" [] "entries"
        "Entries that carried them: many commands share one.";
    ENTRIES_APPLIED Counter "flotilla_entries_applied_total" [] "entries"
        "Entries of any kind that this node has applied.";
    ENTRY_APPLY Histogram "flotilla_entry_apply_seconds" [] "seconds"
        "How long an entry took to be carried out and written.";
    ENTRY_WRITTEN Counter "flotilla_entry_written_bytes_total" [] "bytes"
        "Keys and values that applied entries have written to the state.";
    ENTRY_WRITTEN_MAX Gauge "flotilla_largest_entry_written_bytes" [] "bytes"
        "The most that one entry has written to the state since the node was started. It stays below 32 MiB.";
    COMMANDS Counter "flotilla_commands_total" ["kind", "result"] "commands"
        "Commands that this node's engine carried out: `accepted` or `rejected`. Each node carries out all of them.";
    REJECTIONS Counter "flotilla_command_rejections_total" ["code"] "commands"
        "Commands that this node's engine rejected, by the code of the refusal.";
    PANICS Counter "flotilla_command_panics_total" [] "commands"
        "Commands that hit a bug of the engine, which was contained. Part of the state: the same on each node, also after a restart.";
    QUARANTINED Gauge "flotilla_quarantined" ["kind"] "items"
        "What is set aside because of such a bug.";
    RUNS Counter "flotilla_runs_total" [] "runs"
        "Workflow runs since the cluster was founded. Part of the state.";
    ACTION_RUNS Counter "flotilla_action_runs_total" [] "runs"
        "Action runs since the cluster was founded. Part of the state.";

    TIMERS_OVERDUE Gauge "flotilla_timers_overdue_seconds" [] "seconds"
        "For how long the earliest timer has been due and has not fired. 0 on nodes that do not lead.";
    TIMER_DELAY Histogram "flotilla_timer_delay_seconds" [] "seconds"
        "How long after it was due a timer fired.";
    TASKS_READY Gauge "flotilla_tasks_ready" ["namespace", "action"] "tasks"
        "Tasks that wait for a worker. The 100 actions with the most are told apart; the others are in `*`.";
    TASKS_LEASED Gauge "flotilla_tasks_leased" ["namespace", "action"] "tasks"
        "Tasks that a worker has. The 100 actions with the most are told apart; the others are in `*`.";
    TASKS_UNSERVED Gauge "flotilla_tasks_unserved" ["namespace", "action"] "tasks"
        "Tasks that wait for a worker while no worker that is heard and takes tasks handles their action. Bounded like the tasks that wait.";
    WORKERS Gauge "flotilla_workers" ["status"] "workers"
        "Registered workers, those in the nodes included.";

    WASM_CALLS Counter "flotilla_wasm_calls_total" ["result"] "calls"
        "Calls of WebAssembly actions on this node: `completed` with an outcome, `failed`, `timed_out`, `broken` when the module could not be run, `refused` when the node could not load it.";
    WASM_CALL Histogram "flotilla_wasm_call_seconds" [] "seconds"
        "How long such a call took, loading included.";
    WASM_RUNNING Gauge "flotilla_wasm_calls_running" [] "calls"
        "Such calls that run now.";

    ROCKSDB_FILES Gauge "flotilla_rocksdb_files_bytes" ["database"] "bytes"
        "The files of a RocksDB instance, `log` or `state`.";
    ROCKSDB_BUFFERS Gauge "flotilla_rocksdb_memtables_bytes" ["database"] "bytes"
        "What was written to it and is not in files yet.";
    ROCKSDB_CACHE Gauge "flotilla_rocksdb_block_cache_bytes" ["database"] "bytes"
        "What its cache of blocks holds.";
    ROCKSDB_PENDING Gauge "flotilla_rocksdb_pending_compaction_bytes" ["database"] "bytes"
        "What it has to rewrite until its files are in shape; an estimate.";
    ROCKSDB_COMPACTIONS Gauge "flotilla_rocksdb_running_compactions" ["database"] "compactions"
        "Compactions that run.";
    ROCKSDB_ROWS Gauge "flotilla_rocksdb_rows" ["database"] "rows"
        "Its rows; an estimate.";
    ROCKSDB_STALLED Gauge "flotilla_rocksdb_write_stopped" ["database"] "0 or 1"
        "1 while it takes no writes until compactions have caught up.";

    GRPC_REQUESTS Counter "flotilla_grpc_requests_total" ["method", "code"] "requests"
        "Requests over gRPC, by the status with which the reply began. What a stream ends with is not counted.";
    GRPC_REQUEST Histogram "flotilla_grpc_request_seconds" ["method"] "seconds"
        "How long it took until the reply to a request began.";
    GRPC_IN_HAND Gauge "flotilla_grpc_requests_in_hand" [] "requests"
        "Requests to which no reply has begun.";

    DISK_FREE Gauge "flotilla_data_disk_free_bytes" [] "bytes"
        "What is free for the node on the file system of its data directory.";
    DISK_SIZE Gauge "flotilla_data_disk_bytes" [] "bytes"
        "The size of that file system.";
    ENGINE_VERSION_AGREED Gauge "flotilla_engine_version" [] "version"
        "The engine version on which the cluster has agreed: what newer binaries decide differently waits until all members know it.";
    DISK_ROOM Gauge "flotilla_data_disk_room" [] "2, 1 or 0"
        "2 while the node writes everything, 1 while its disk is so full that it takes no new work, 0 while it writes nothing that it can refuse.";
    PROCESS_CPU Counter "process_cpu_seconds_total" [] "seconds"
        "Processor time of the process.";
    PROCESS_RESIDENT Gauge "process_resident_memory_bytes" [] "bytes"
        "Memory of the process. On Linux only.";
    PROCESS_FILES Gauge "process_open_fds" [] "files"
        "Files and sockets that the process has open. On Linux only.";
    PROCESS_FILES_MAX Gauge "process_max_fds" [] "files"
        "How many it may have open.";
    PROCESS_START Gauge "process_start_time_seconds" [] "seconds"
        "When the node was started, in seconds since the Unix epoch.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for metric in METRICS {
            let name = metric.name;
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(name.bytes().all(is_plain), "{name}");
            assert!(
                name.starts_with("flotilla_") || name.starts_with("process_"),
                "{name}"
            );
            let is_counter = metric.kind == MetricKind::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            let stem = name.trim_end_matches("_total");
            for unit in ["seconds", "bytes"] {
                let ends = stem.ends_with(&format!("_{unit}"));
                assert_eq!(ends, metric.unit == unit, "{name}");
            }
        }
    }

    #[test]
    fn names_are_given_once_and_every_metric_has_a_sentence() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            assert!(!metric.help.contains(['\n', '\\', '|']), "{}", metric.name);
        }
    }
}
