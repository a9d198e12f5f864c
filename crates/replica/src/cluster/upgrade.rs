//! Raises the engine version once every member knows a newer one (design rule 12).

use crate::core::Core;
use crate::proposal::{Control, Proposal};
use std::sync::Arc;

/// At the leader: makes the cluster agree on the newest version that all members know, if it is
/// newer than the agreed one. It waits for members that do not respond: they might know less.
///
/// It takes the lock of membership changes, so that no member is added meanwhile: a new member is
/// asked for its version before it is added, and would not be asked here.
pub(crate) async fn consider_engine_version(core: &Core) {
    let agreed = *core.applied_state.engine_version.borrow();
    if agreed >= core.local.engine_version || !core.leadership.borrow().is_ready {
        return;
    }
    let Ok(turn) = Arc::clone(&core.changing).try_lock_owned() else {
        return;
    };
    let members = core.consensus.membership();
    let status = core.status_reports.collect().await;
    let known = status.nodes.iter().map(|node| node.engine_version).min();
    let Some(version) = known.filter(|known| *known > agreed) else {
        return;
    };
    // Another leader may have added a member.
    if core.consensus.membership().log_id() != members.log_id() {
        return;
    }
    let raft = core.raft.clone();
    // Not awaited: it may take until a quorum is back. It keeps the lock: until then it is unknown
    // whether a new member has to know the version. It is not forwarded: only this node knows which
    // members were asked.
    tokio::spawn(async move {
        let proposal = Proposal::Control(Control::RaiseEngineVersion { version });
        if let Err(error) = raft.client_write(proposal).await {
            tracing::debug!(%error, version, "the engine version was not raised");
        }
        drop(turn);
    });
}
