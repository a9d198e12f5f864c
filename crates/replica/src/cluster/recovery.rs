//! Decides when a restarted node may serve reads, and reports when openraft has ended.

use crate::fatal::FatalError;
use crate::lifecycle::Lifecycle;
use crate::membership::term_of;
use crate::raft::type_config::ConsensusHandle;
use crate::read::Reads;
use crate::state::rows::AppliedPosition;
use openraft::async_runtime::watch::WatchReceiver;
use std::sync::Arc;
use tokio::sync::watch;

/// Marks the node readable once it has applied up to a commit index that its current leader
/// established in its own term.
///
/// An earlier commit index is not enough: a new leader may at first know less as committed than
/// this node had applied, and served, before it was restarted.
pub(crate) async fn watch_recovery(
    raft: ConsensusHandle,
    mut applied_position: watch::Receiver<AppliedPosition>,
    reads: Arc<Reads>,
) {
    let mut metrics = raft.metrics();
    let target = loop {
        {
            let metrics = metrics.borrow_watched();
            let committed = metrics.cluster_committed.as_ref();
            if let Some(log_id) = committed
                && metrics.vote.committed
                && term_of(log_id) == metrics.vote.leader_id.term
            {
                break log_id.index();
            }
        }
        if metrics.changed().await.is_err() {
            return;
        }
    };
    if applied_position
        .wait_for(|applied_position| applied_position.index() >= Some(target))
        .await
        .is_ok()
    {
        reads.set_readable();
    }
}

/// Reports when openraft ends before it was asked to.
pub(crate) async fn watch_consensus(raft: ConsensusHandle, lifecycle: Lifecycle) {
    let mut metrics = raft.metrics();
    loop {
        let state = metrics.borrow_watched().running_state.clone();
        if lifecycle.has_ended() {
            return;
        }
        if let Err(error) = state {
            return lifecycle.fail(FatalError::Consensus(error.to_string()));
        }
        if metrics.changed().await.is_err() {
            if !lifecycle.has_ended() {
                lifecycle.fail(FatalError::Consensus("its core task is gone".to_owned()));
            }
            return;
        }
    }
}
