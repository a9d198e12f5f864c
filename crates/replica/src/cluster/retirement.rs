//! Ends the replica of a removed member: it has no leader contact, and no member counts on it.
//!
//! Most learn of their removal from the log. A member that was down meanwhile receives nothing
//! more, and cannot distinguish that from a silent leader; so every member that does not lead asks
//! the others from time to time.

use crate::cluster::formation;
use crate::core::Core;
use crate::fatal::FatalError;
use crate::start_error::StartError;
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// The interval of these requests.
const INTERVAL: Duration = Duration::from_secs(2);

/// Ends the replica once it learns that it was removed.
pub(crate) async fn watch_removal(core: Arc<Core>) {
    let mut members = core.applied_state.membership.subscribe();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_removed = tokio::select! {
            changed = members.changed() => {
                if changed.is_err() {
                    return;
                }
                is_retired(&core)
            }
            _ = ticks.tick() => is_retired(&core) || others_tell(&core).await,
        };
        if is_removed {
            let removed = StartError::Removed(NodeId(core.local.node_id));
            return core.fail(FatalError::Refused(removed));
        }
    }
}

/// Whether this node has applied its own removal.
fn is_retired(core: &Core) -> bool {
    core.is_retired(NodeId(core.local.node_id))
}

/// Whether another member reports that this one was removed.
async fn others_tell(core: &Core) -> bool {
    if core.local.cluster_id().is_none() || core.is_leading() {
        return false;
    }
    let members = core.membership();
    let others = members
        .nodes()
        .filter(|(node_id, _)| **node_id != core.local.node_id);
    let pending = others.map(|(_, member)| formation::probe(core, &member.peer_address));
    let responses = join_all(pending).await;
    responses
        .iter()
        .flatten()
        .any(|answer| formation::is_retired(core, answer))
}
