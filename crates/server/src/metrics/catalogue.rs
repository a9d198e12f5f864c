//! The catalogue of all metrics: what a node exposes, what the manual lists, and what the dashboard
//! and the alerts may name.

/// The Prometheus type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows; resets when the node restarts, unless its help says otherwise.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations, in buckets.
    Histogram,
}

impl MetricKind {
    /// Its name in Prometheus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The metric's name, as exposed.
    pub name: &'static str,
    /// Its Prometheus type.
    pub kind: MetricKind,
    /// The names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
    /// The unit of its values.
    pub unit: &'static str,
    /// What it measures, in a sentence or two.
    pub help: &'static str,
}

/// Makes a constant for each row, and the list of all rows.
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

        /// All metrics, in the catalogue's order.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    NODE_INFO Gauge "flotilla_node_info" ["node_id", "version"] "1"
        "The node's id and the version of its binary; always 1.";
    READY Gauge "flotilla_ready" [] "0 or 1"
        "1 while the node may serve, as `/readyz` reports.";
    TLS_CERTIFICATE_EXPIRY Gauge "flotilla_tls_certificate_expiry_timestamp_seconds" [] "seconds"
        "When the node's certificate expires, in seconds since the Unix epoch. On a node with TLS \
         only.";

    RAFT_TERM Gauge "flotilla_raft_term" [] "terms"
        "The newest Raft term that the node knows.";
    RAFT_IS_LEADER Gauge "flotilla_raft_is_leader" [] "0 or 1"
        "1 while the node leads and a quorum has recently confirmed it.";
    RAFT_LEADER_ID Gauge "flotilla_raft_leader_id" [] "node id"
        "The leader that this node knows; 0 while it knows none.";
    RAFT_MEMBERS Gauge "flotilla_raft_members" ["role"] "nodes"
        "Members of the cluster: `voter` or `learner`.";
    RAFT_LAST_LOG_INDEX Gauge "flotilla_raft_last_log_index" [] "index"
        "The index of the last entry in the node's log.";
    RAFT_COMMITTED_INDEX Gauge "flotilla_raft_committed_index" [] "index"
        "The index of the last entry that the node knows to be committed.";
    RAFT_APPLIED_INDEX Gauge "flotilla_raft_applied_index" [] "index"
        "The index of the last entry that the node has applied.";
    RAFT_SNAPSHOT_INDEX Gauge "flotilla_raft_snapshot_index" [] "index"
        "The index of the last entry that the node's snapshot covers.";
    RAFT_PURGED_INDEX Gauge "flotilla_raft_purged_index" [] "index"
        "The index of the last entry that was purged from the node's log.";
    RAFT_COMMIT_LAG Gauge "flotilla_raft_commit_lag_entries" [] "entries"
        "Entries in the node's log that it does not know to be committed.";
    RAFT_APPLY_LAG Gauge "flotilla_raft_apply_lag_entries" [] "entries"
        "Entries that the node knows to be committed and has not applied.";
    RAFT_FOLLOWER_LAG Gauge "flotilla_raft_follower_lag_entries" ["peer_id"] "entries"
        "Entries of the leader's log that are not known to be on the member `peer_id`. Exposed by \
         the leader only.";
    RAFT_ELECTIONS Counter "flotilla_raft_elections_total" [] "terms"
        "Terms that began since the node first knew one.";
    RAFT_LEADER_CHANGES Counter "flotilla_raft_leader_changes_total" [] "changes"
        "Leader changes that the node has seen.";
    RAFT_TIMING_DIFFERS Gauge "flotilla_raft_timing_differs" [] "0 or 1"
        "1 while the node's setting `election_ms` differs from that of the leader that it follows.";
    RAFT_SNAPSHOTS Counter "flotilla_raft_snapshots_total" ["kind"] "snapshots"
        "Snapshots that the node `created` from its own state or `installed` from another member, \
         and those that it `refused` because another one was being installed.";
    BACKUP_COMPLETED Gauge "flotilla_backup_completed_timestamp_seconds" [] "seconds"
        "When the node last sent a whole backup, in seconds since the Unix epoch. Exposed once it \
         has sent one since its start.";
    RAFT_LOG_FSYNC Histogram "flotilla_raft_log_fsync_duration_seconds" [] "seconds"
        "Time to write one batch of entries to the log and to make it durable.";
    RAFT_LOG_SYNC_AGE Gauge "flotilla_raft_log_sync_age_seconds" [] "seconds"
        "Age of the oldest write to the log that has not returned, without the time that it waited for earlier ones; 0 if \
         there is none.";
    RAFT_LOG_WRITTEN Counter "flotilla_raft_log_written_bytes_total" [] "bytes"
        "Entries written to the log.";
    RAFT_LOG_BYTES Gauge "flotilla_raft_log_bytes" [] "bytes"
        "Size of the log, from its first entry to its last.";
    STATE_DIVERGED Gauge "flotilla_state_diverged" [] "0 or 1"
        "1 once the node's state differs from the majority's, or if no majority agrees.";

    COMMANDS_QUEUED Gauge "flotilla_commands_queued" ["class"] "commands"
        "Commands that are queued for a proposal: `intake` is new work, `progress` completes open \
         work. Only a leader has any.";
    COMMANDS_QUEUED_BYTES Gauge "flotilla_commands_queued_bytes" [] "bytes"
        "Size of the commands that are queued for a proposal.";
    COMMANDS_FORWARDED Counter "flotilla_commands_forwarded_total" [] "commands"
        "Attempts to have the leader execute a command that arrived at this node.";
    COMMANDS_SHED Counter "flotilla_commands_shed_total" [] "commands"
        "Commands that arrived at this node and were shed because too many were queued.";
    COMMANDS_PROPOSED Counter "flotilla_commands_proposed_total" [] "commands"
        "Commands that this node proposed as the leader.";
    ENTRIES_PROPOSED Counter "flotilla_entries_proposed_total" [] "entries"
        "Entries that carried the proposed commands: many commands share one entry.";
    ENTRIES_APPLIED Counter "flotilla_entries_applied_total" [] "entries"
        "Entries of any kind that this node has applied.";
    ENTRY_APPLY Histogram "flotilla_entry_apply_duration_seconds" [] "seconds"
        "Time to apply one entry.";
    ENTRY_APPLY_MAX Gauge "flotilla_entry_apply_duration_max_seconds" [] "seconds"
        "The longest time to apply one entry since the node started.";
    ENTRY_WRITTEN Counter "flotilla_entry_written_bytes_total" [] "bytes"
        "Keys and values that applied entries have written to the state.";
    ENTRY_WRITTEN_MAX Gauge "flotilla_entry_written_max_bytes" [] "bytes"
        "The largest write of one entry to the state since the node started. It stays below 32 \
         MiB.";
    COMMANDS Counter "flotilla_commands_applied_total" ["kind", "result"] "commands"
        "Commands that this node's engine executed: `accepted` or `rejected`. Every node executes \
         all of them.";
    REJECTIONS Counter "flotilla_command_rejections_total" ["code"] "commands"
        "Commands that this node's engine rejected, by the code of the rejection.";
    QUOTA_REFUSALS Counter "flotilla_quota_refusals_total" ["dimension"] "commands"
        "Commands that this node's engine rejected because of a quota, by what the quota limits. Every node executes all \
         commands.";
    PANICS Counter "flotilla_command_panics_total" [] "commands"
        "Commands that hit a bug of the engine, which was contained. Part of the state: equal on \
         all nodes, and kept across restarts.";
    QUARANTINED Gauge "flotilla_quarantined_items" ["kind"] "items"
        "Items in quarantine after such a bug.";
    RUNS Counter "flotilla_runs_total" [] "runs"
        "Workflow runs since the cluster was formed. Part of the state.";
    ACTION_RUNS Counter "flotilla_action_runs_total" [] "runs"
        "Action runs since the cluster was formed. Part of the state.";

    TIMERS_OVERDUE Gauge "flotilla_timers_overdue_seconds" [] "seconds"
        "How long the earliest due timer has been waiting to fire. 0 on nodes that do not lead.";
    TIMER_DELAY Histogram "flotilla_timer_delay_seconds" [] "seconds"
        "Delay between a timer's due time and its firing.";
    TASKS_READY Gauge "flotilla_tasks_ready" ["namespace", "action"] "tasks"
        "Tasks that wait for a worker. The 100 actions with the most tasks have their own series; \
         all others are in `*`.";
    TASKS_LEASED Gauge "flotilla_tasks_leased" ["namespace", "action"] "tasks"
        "Tasks that workers hold. The 100 actions with the most tasks have their own series; all \
         others are in `*`.";
    TASKS_UNSERVED Gauge "flotilla_tasks_unserved" ["namespace", "action"] "tasks"
        "Tasks that wait for a worker while no healthy worker that takes tasks handles their \
         action. Limited to 100 actions like the waiting tasks.";
    REQUEST_IDS Gauge "flotilla_request_ids" [] "ids"
        "Remembered request ids.";
    REQUEST_IDS_MAX Gauge "flotilla_request_ids_max" [] "ids"
        "The limit on remembered request ids. At the limit, the cluster refuses new work of namespaces that have used up their share. `flo cluster set` changes it.";
    WORKERS Gauge "flotilla_workers" ["status"] "workers"
        "Registered workers, including the embedded ones.";

    WASM_CALLS Counter "flotilla_wasm_calls_total" ["result"] "calls"
        "Calls of WebAssembly actions on this node: `completed` with an outcome, `failed`, \
         `timed_out`, `broken` if the module could not run, `refused` if the node could not load \
         or compile it.";
    WASM_CALL Histogram "flotilla_wasm_call_duration_seconds" [] "seconds"
        "Duration of a WebAssembly call, without the compilation of its module.";
    WASM_RUNNING Gauge "flotilla_wasm_calls_running" [] "calls"
        "WebAssembly calls in progress.";
    WASM_LOG_DROPPED Counter "flotilla_wasm_log_lines_dropped_total" [] "lines"
        "Log lines of WebAssembly actions that were not written, because the action had logged too \
         much.";

    ROCKSDB_FILES Gauge "flotilla_rocksdb_sst_files_bytes" ["database"] "bytes"
        "Size of the files of a RocksDB instance, `log` or `state`.";
    ROCKSDB_BUFFERS Gauge "flotilla_rocksdb_memtables_bytes" ["database"] "bytes"
        "Data in memtables, not yet flushed to files.";
    ROCKSDB_CACHE Gauge "flotilla_rocksdb_block_cache_bytes" ["database"] "bytes"
        "Size of the block cache.";
    ROCKSDB_PENDING Gauge "flotilla_rocksdb_pending_compaction_bytes" ["database"] "bytes"
        "Estimated bytes pending compaction.";
    ROCKSDB_COMPACTIONS Gauge "flotilla_rocksdb_running_compactions" ["database"] "compactions"
        "Running compactions.";
    ROCKSDB_ROWS Gauge "flotilla_rocksdb_rows" ["database"] "rows"
        "Estimated number of rows.";
    ROCKSDB_STALLED Gauge "flotilla_rocksdb_write_stopped" ["database"] "0 or 1"
        "1 while RocksDB stops writes until compactions have caught up.";

    GRPC_REQUESTS Counter "flotilla_grpc_requests_total" ["method", "code"] "requests"
        "gRPC requests, by the status with which the response began. The final status of a stream \
         is not counted.";
    GRPC_REQUEST Histogram "flotilla_grpc_request_duration_seconds" ["method"] "seconds"
        "Time until the response to a request began.";
    GRPC_IN_FLIGHT Gauge "flotilla_grpc_requests_in_flight" [] "requests"
        "Requests whose response has not begun.";
    WATCH_READS Counter "flotilla_watch_reads_total" [] "reads"
        "Reads of runs for callers that watch them or wait for their end. After a change, all that \
         watch the same run share one read.";

    MEMORY_MAX Gauge "flotilla_memory_max_bytes" [] "bytes"
        "The memory that determines the sizes of the node's pools: `max_memory_bytes`, or the limit \
         that the system sets.";
    MEMORY_RESERVED Gauge "flotilla_memory_reserved_bytes" ["owner"] "bytes"
        "Reserved memory, by owner: `requests` and `reads` in progress, open `worker_streams`, \
         messages that they have received (`worker_messages`), unsent `responses`, unsent results \
         of watches (`views`), calls on the operators' port (`admin`), calls of `wasm` actions, \
         `compilations` of their modules, compiled `modules`, commands in the leader's `queue`, \
         commands on the way to the leader (`forwards`), and `snapshots` that are sent or received.";
    MEMORY_RESERVED_MAX Gauge "flotilla_memory_reserved_max_bytes" ["owner"] "bytes"
        "Memory that can be reserved for each owner; when it is used up, requests are shed and streams wait.";
    MEMORY_REFUSED Counter "flotilla_memory_refused_total" ["owner"] "reservations"
        "Reservations that the memory of an owner had no room for. A refused reservation of `requests`, \
         `worker_streams` or `admin` sheds a request; others wait, or close a connection that does not read.";

    DISK_FREE Gauge "flotilla_data_disk_free_bytes" [] "bytes"
        "Space that is free for the node on the file system of its data directory.";
    DISK_SIZE Gauge "flotilla_data_disk_size_bytes" [] "bytes"
        "Size of the file system of the data directory.";
    ENGINE_VERSION_AGREED Gauge "flotilla_engine_version" [] "version"
        "The engine version on which the cluster has agreed: newer rules stay off until all \
         members know them.";
    DISK_PRESSURE Gauge "flotilla_data_disk_pressure" [] "0, 1 or 2"
        "Disk pressure of the node: 0 writes everything, 1 (low) takes no new work, 2 (critical) \
         writes nothing that it can refuse.";
    ACCESS_OPEN_BEYOND_LOOPBACK Gauge "flotilla_access_open_beyond_loopback" [] "0 or 1"
        "1 if the cluster is open, so that callers need no token, and the node listens on an address beyond loopback.";
    OIDC_TOKENS Counter "flotilla_oidc_tokens_total" ["issuer", "result"] "tokens"
        "Tokens of an issuer that were verified, because the node did not remember them: `accepted`, `malformed`, `expired`, \
         `unknown`, or `unavailable` if the keys were missing.";
    OIDC_KEY_FETCHES Counter "flotilla_oidc_key_fetches_total" ["issuer", "result"] "fetches"
        "How often the keys of an issuer were fetched, or read from their file: `succeeded` or `failed`.";
    OIDC_KEYS_AGE Gauge "flotilla_oidc_keys_age_seconds" ["issuer"] "seconds"
        "How long ago the keys of an issuer were fetched. Absent until they were.";
    PROCESS_CPU Counter "process_cpu_seconds_total" [] "seconds"
        "CPU time of the process.";
    PROCESS_RESIDENT Gauge "process_resident_memory_bytes" [] "bytes"
        "Resident memory of the process. On Linux only.";
    PROCESS_FILES Gauge "process_open_fds" [] "files"
        "Open file descriptors of the process. On Linux only.";
    PROCESS_FILES_MAX Gauge "process_max_fds" [] "files"
        "Limit on the open file descriptors of the process.";
    PROCESS_START Gauge "process_start_time_seconds" [] "seconds"
        "When the node started, in seconds since the Unix epoch.";
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
