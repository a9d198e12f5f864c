//! Raising the engine version once every member knows a newer one (design rule 12).

use crate::cluster::status;
use crate::core::Core;
use crate::proposal::{Control, Proposal};
use std::sync::Arc;

/// At the leader: has the cluster agree on the newest version that all members know, if it is newer than
/// the one agreed. A member that does not answer is waited for: it might know less.
///
/// It is a change of members in that nobody may be taken in meanwhile: a new member is asked what it knows
/// before it is one, and would not be asked here.
pub(crate) async fn consider_engine_version(core: &Core) {
    let agreed = *core.outlets.engine_version.borrow();
    if agreed >= core.local.engine_version || !core.leadership.borrow().is_ready {
        return;
    }
    let Ok(turn) = Arc::clone(&core.changing).try_lock_owned() else {
        return;
    };
    let members = core.membership();
    let status = status::collect(core).await;
    let known = status.nodes.iter().map(|node| node.engine_version).min();
    let Some(version) = known.filter(|known| *known > agreed) else {
        return;
    };
    // Another leader may have taken somebody in.
    if core.membership().log_id() != members.log_id() {
        return;
    }
    let raft = core.raft.clone();
    // Not awaited: it may take until a quorum is back. The turn goes with it: it is not known before whether
    // a new member has to know the version. Nor is it forwarded: only this node knows who was asked.
    tokio::spawn(async move {
        let proposal = Proposal::Control(Control::RaiseEngineVersion { version });
        if let Err(error) = raft.client_write(proposal).await {
            tracing::debug!(%error, version, "the engine version was not raised");
        }
        drop(turn);
    });
}
