//! A follower that misses what the log no longer has, and gets a snapshot while clients go on.

use super::kill::a_follower;
use super::{Needs, Nemesis};
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Keeps a follower away, by SIGKILL or SIGSTOP, while the log is purged behind short snapshots.
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
            flags: &["--snapshot-log-bytes=65536", "--log-bytes-max=131072"],
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let Some(victim) = a_follower(stage) else {
            return "nothing: there is no follower".to_owned();
        };
        if stage.random.random_bool(0.5) {
            stage.cluster.kill(victim);
            return format!("SIGKILL {victim}, until the log has gone on without it");
        }
        stage.cluster.node(victim).pause();
        self.paused = Some(victim);
        format!("SIGSTOP {victim}, until the log has gone on without it")
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
