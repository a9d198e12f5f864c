//! One node after the other is stopped gracefully and started again, as for a new version.

use super::Nemesis;
use crate::stage::Stage;
use std::time::Duration;

/// Restarts all nodes, one at a time.
pub(super) struct RollingRestart;

impl Nemesis for RollingRestart {
    fn name(&self) -> &'static str {
        "rolling-restart"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        for id in stage.ids() {
            let _ = stage.cluster.node_mut(id).stop();
            stage.cluster.restart(id);
            // As an operator would: the next one only after this one is back.
            stage.cluster.await_health();
        }
        "SIGTERM to each node in turn".to_owned()
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
