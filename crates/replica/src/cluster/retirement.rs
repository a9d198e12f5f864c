//! A member that was removed ends: it hears no leader any more, and nobody counts on it.
//!
//! Most learn it from the log. One that was away meanwhile is sent nothing any more, and cannot tell
//! that from a quiet leader; so every member that does not lead asks the others now and then.

use crate::cluster::formation;
use crate::core::Core;
use crate::fatal::FatalError;
use crate::start::StartError;
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often a member asks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Ends the replica once it learns that it was removed.
pub(crate) async fn watch_removal(core: Arc<Core>) {
    let mut members = core.outlets.membership.subscribe();
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

/// Whether another member tells this one that it was removed.
async fn others_tell(core: &Core) -> bool {
    if core.local.cluster_id().is_none() || core.is_leading() {
        return false;
    }
    let members = core.membership();
    let others = members
        .nodes()
        .filter(|(node_id, _)| **node_id != core.local.node_id);
    let asked = others.map(|(_, member)| formation::probe(core, &member.peer_address));
    let answers = join_all(asked).await;
    answers
        .iter()
        .flatten()
        .any(|answer| formation::is_retired(core, answer))
}
