//! A replica's current values, for metrics.

use crate::cluster::disk_pressure::DiskPressure;
use crate::core::Core;
use crate::membership::voters;
use crate::network::snapshots::SNAPSHOT_BYTES;
use crate::storage::{DiskSpace, StoreFigures};
use flotilla_engine::NodeId;
use openraft::async_runtime::watch::WatchReceiver;
use std::time::Duration;

/// A replica's current values, as far as it knows them; log indexes are 0 before the first entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The newest term that it knows.
    pub term: u64,
    /// Whether it leads, with a quorum that has recently responded.
    pub is_leading: bool,
    /// The member that leads with a quorum, if it is known.
    pub leader: Option<NodeId>,
    /// Members that vote.
    pub voters_count: usize,
    /// Members without a vote, which only receive the log.
    pub learners_count: usize,
    /// The last entry of its log.
    pub last_log_index: u64,
    /// The last entry that it knows to be committed.
    pub committed_index: u64,
    /// The last entry that it has applied.
    pub applied_index: u64,
    /// The last entry that its snapshot covers.
    pub snapshot_index: u64,
    /// The last entry that was purged from its log.
    pub purged_index: u64,
    /// The progress of the other members, while it leads.
    pub followers: Vec<FollowerGauge>,
    /// Commands of new work that are queued here.
    pub intake_waiting: usize,
    /// Commands that complete open work and are queued here.
    pub progress_waiting: usize,
    /// The size of all queued commands, in bytes.
    pub waiting_bytes: usize,
    /// Commands on the way to the leader that wait for the transport, in bytes.
    pub forward_bytes: usize,
    /// The memory of the snapshots that it sends and receives, in bytes.
    pub snapshot_bytes: usize,
    /// The size of the log, in bytes.
    pub log_bytes: u64,
    /// The age of the oldest unfinished write to the log; zero if there is none.
    pub log_sync_age: Duration,
    /// The engine version on which the cluster has agreed, as far as it has applied.
    pub engine_version: u32,
    /// The space on its disk, if that is limited.
    pub disk: Option<DiskSpace>,
    /// Its disk pressure.
    pub disk_pressure: DiskPressure,
    /// Whether its state has diverged, or no majority agreed (design rule 11).
    pub has_digest_conflict: bool,
    /// The log's store, if it reports figures.
    pub log_store: Option<StoreFigures>,
    /// The state's store, if it reports figures.
    pub state_store: Option<StoreFigures>,
}

/// The progress of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerGauge {
    /// The member's id.
    pub node_id: NodeId,
    /// The last entry that it is known to have.
    pub matched_index: u64,
    /// Whether it has said that it is drained.
    pub is_drained: bool,
}

/// The replica's current values.
pub(crate) fn read(core: &Core) -> Gauges {
    let waiting = core.queue.waiting();
    let split = core.applied_state.split.borrow().is_some();
    let leader = core.leadership.borrow().leader.clone();
    let leader = leader.filter(|_| core.leader_contact.is_recent());
    let disk = core.disk.measured();
    let installs_count = usize::from(core.installs.pending().is_some());
    let snapshots_count = core.links.outgoing_snapshot_count() + installs_count;
    let known = Gauges {
        is_leading: core.consensus.is_leading(),
        leader: leader.map(|leader| leader.node_id),
        applied_index: core
            .applied_state
            .applied_position
            .borrow()
            .index()
            .unwrap_or(0),
        snapshot_index: core.snapshot_maker.index().unwrap_or(0),
        purged_index: core.log.purged().map_or(0, |log_id| log_id.index()),
        intake_waiting: waiting.intake,
        progress_waiting: waiting.progress,
        waiting_bytes: waiting.bytes,
        forward_bytes: core.links.forward_bytes(),
        snapshot_bytes: snapshots_count * SNAPSHOT_BYTES,
        log_bytes: core.log.bytes(),
        log_sync_age: core.log.progress().age(),
        engine_version: *core.applied_state.engine_version.borrow(),
        disk: disk.space,
        disk_pressure: disk.disk_pressure,
        has_digest_conflict: split || core.lifecycle.is_diverged(),
        log_store: core.log.figures(),
        state_store: core.store.figures(),
        ..Gauges::default()
    };
    with_consensus(core, known)
}

/// Adds what openraft knows. Its metrics are borrowed last and once, as in `status::own`.
fn with_consensus(core: &Core, known: Gauges) -> Gauges {
    let metrics = core.raft.metrics();
    let metrics = metrics.borrow_watched();
    let membership = metrics.membership_config.membership();
    let voters_count = voters(membership).len();
    let replication = metrics.replication.iter().flatten();
    let others = replication.filter(|(node_id, _)| **node_id != core.local.node_id);
    let committed = metrics.local_committed.as_ref();
    Gauges {
        term: metrics.current_term,
        voters_count,
        learners_count: membership.nodes().count().saturating_sub(voters_count),
        last_log_index: metrics.last_log_index.unwrap_or(0),
        committed_index: committed.map_or(0, |log_id| log_id.index()),
        followers: others
            .map(|(node_id, matched)| FollowerGauge {
                node_id: NodeId(*node_id),
                matched_index: matched.as_ref().map_or(0, |log_id| log_id.index()),
                is_drained: core.local.is_drained(*node_id),
            })
            .collect(),
        ..known
    }
}
