//! Decides when a restarted node may serve reads, and reports when openraft has ended.

use crate::core::Core;
use crate::fatal::FatalError;
use crate::membership::term_of;
use openraft::async_runtime::watch::WatchReceiver;
use std::sync::Arc;

/// Marks the node readable once it has applied up to a commit index that its current leader
/// established in its own term.
///
/// An earlier commit index is not enough: a new leader may at first know less as committed than
/// this node had applied, and served, before it was restarted.
pub(crate) async fn watch_recovery(core: Arc<Core>) {
    let mut metrics = core.raft.metrics();
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
    let mut applied_position = core.applied_state.applied_position.subscribe();
    if applied_position
        .wait_for(|applied_position| applied_position.index() >= Some(target))
        .await
        .is_ok()
    {
        core.readable.send_replace(true);
    }
}

/// Reports when openraft ends before it was asked to.
pub(crate) async fn watch_consensus(core: Arc<Core>) {
    let mut metrics = core.raft.metrics();
    loop {
        let state = metrics.borrow_watched().running_state.clone();
        if core.lifecycle.has_ended() {
            return;
        }
        if let Err(error) = state {
            return core
                .lifecycle
                .fail(FatalError::Consensus(error.to_string()));
        }
        if metrics.changed().await.is_err() {
            if !core.lifecycle.has_ended() {
                core.lifecycle
                    .fail(FatalError::Consensus("its core task is gone".to_owned()));
            }
            return;
        }
    }
}
