//! How a replica stands at one moment, for whoever watches over it.

use crate::cluster::room::Room;
use crate::core::Core;
use crate::membership::voters;
use crate::storage::{DiskSpace, StoreFigures};
use flotilla_engine::NodeId;
use openraft::async_runtime::watch::WatchReceiver;

/// How a replica stands at one moment, as far as it knows; indexes of the log are 0 before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The newest term that it knows.
    pub term: u64,
    /// Whether it leads, with a quorum that has answered lately.
    pub is_leading: bool,
    /// Who leads with a quorum behind it, if anybody is known to.
    pub leader: Option<NodeId>,
    /// Members that vote.
    pub voters_count: usize,
    /// Members that receive the log without a vote.
    pub learners_count: usize,
    /// The last entry of its log.
    pub last_log_index: u64,
    /// The last entry that it knows to be on a majority.
    pub committed_index: u64,
    /// The last entry that it has applied.
    pub applied_index: u64,
    /// The last entry that its snapshot covers.
    pub snapshot_index: u64,
    /// The last entry that its log does not hold any more.
    pub purged_index: u64,
    /// How far the other members are, while it leads.
    pub followers: Vec<FollowerGauge>,
    /// Commands of new work that wait to be proposed here.
    pub intake_waiting: usize,
    /// Commands that let open work end and wait to be proposed here.
    pub progress_waiting: usize,
    /// What all of them take, in bytes.
    pub waiting_bytes: usize,
    /// The log, in bytes.
    pub log_bytes: u64,
    /// The engine version on which the cluster has agreed, as far as it has applied.
    pub engine_version: u32,
    /// The room on its disk, where that has an end.
    pub disk: Option<DiskSpace>,
    /// What it still writes, as its disk fills up.
    pub room: Room,
    /// Whether its state was found to differ from the majority's, or no majority agreed (design rule 11).
    pub has_digest_conflict: bool,
    /// The log's store, where it tells.
    pub log_store: Option<StoreFigures>,
    /// The state's store, where it tells.
    pub state_store: Option<StoreFigures>,
}

/// How far another member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerGauge {
    /// The member.
    pub node_id: NodeId,
    /// The last entry that it is known to have.
    pub matched_index: u64,
}

/// How the replica stands.
pub(crate) fn read(core: &Core) -> Gauges {
    let waiting = core.queue.waiting();
    let split = core.outlets.split.borrow().is_some();
    let leader = core.leadership.borrow().leader.clone();
    let leader = leader.filter(|_| core.is_led());
    let disk = *core.disk.borrow();
    let known = Gauges {
        is_leading: core.is_leading(),
        leader: leader.map(|leader| leader.node_id),
        applied_index: core.outlets.progress.borrow().index().unwrap_or(0),
        snapshot_index: core.snapshot_index().unwrap_or(0),
        purged_index: core.log.purged().map_or(0, |log_id| log_id.index()),
        intake_waiting: waiting.intake,
        progress_waiting: waiting.progress,
        waiting_bytes: waiting.bytes,
        log_bytes: core.log.bytes(),
        engine_version: *core.outlets.engine_version.borrow(),
        disk: disk.space,
        room: disk.room,
        has_digest_conflict: split || core.is_diverged(),
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
            })
            .collect(),
        ..known
    }
}
