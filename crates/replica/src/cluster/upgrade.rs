//! Raising the engine version once every member knows a newer one (design rule 12).

use crate::cluster::status;
use crate::core::Core;
use crate::proposal::Control;
use std::time::Duration;
use tokio::time::Instant;

const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// At the leader: has the cluster agree on the newest version that all members know, if it is newer than
/// the one agreed. A member that does not answer is waited for: it might know less.
pub(crate) async fn consider_engine_version(core: &Core) {
    let agreed = *core.outlets.engine_version.borrow();
    if agreed >= core.local.engine_version || !core.leadership.borrow().is_ready {
        return;
    }
    let status = status::collect(core).await;
    let known = status.nodes.iter().map(|node| node.engine_version).min();
    let Some(version) = known.filter(|known| *known > agreed) else {
        return;
    };
    let control = Control::RaiseEngineVersion { version };
    let deadline = Instant::now() + CONTROL_TIMEOUT;
    if let Err(error) = core.control(control, deadline).await {
        tracing::debug!(%error, version, "the engine version was not raised");
    }
}
