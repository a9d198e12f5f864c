//! A follower that lacks entries purged from the log, and gets a snapshot while clients work.

use super::kill::a_follower;
use super::{Needs, Nemesis};
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Keeps a follower away with SIGKILL or SIGSTOP, while frequent snapshots let the log be purged.
#[derive(Default)]
pub(super) struct SnapshotInstall {
    paused: Option<u64>,
}

impl Nemesis for SnapshotInstall {
    fn name(&self) -> &'static str {
        "snapshot-install"
    }

    fn needs(&self) -> Needs {
        Needs {
            flags: &["--snapshot-log-bytes=65536", "--max-log-bytes=131072"],
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let Some(victim) = a_follower(stage) else {
            return "nothing: there is no follower".to_owned();
        };
        if stage.random.random_bool(0.5) {
            stage.cluster.kill(victim);
            return format!("SIGKILL {victim}, until the log has moved on without it");
        }
        stage.cluster.node(victim).pause();
        self.paused = Some(victim);
        format!("SIGSTOP {victim}, until the log has moved on without it")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(6)
    }

    fn heal(&mut self, stage: &mut Stage) {
        if let Some(victim) = self.paused.take() {
            stage.cluster.node(victim).resume();
        }
    }
}
