//! A disk without room.

use super::kill::a_follower;
use super::{Needs, Nemesis};
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Fills the disk of one node.
#[derive(Default)]
pub(super) struct FullDisk {
    victim: Option<u64>,
}

impl Nemesis for FullDisk {
    fn name(&self) -> &'static str {
        "disk-full"
    }

    fn needs(&self) -> Needs {
        Needs {
            small_disks: true,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let leads = stage.random.random_bool(0.5);
        let victim = match leads {
            true => stage.leader(),
            false => a_follower(stage).unwrap_or(1),
        };
        self.victim = Some(victim);
        stage.disks[&victim].fill();
        format!("the disk of node {victim} is full")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        if let Some(victim) = self.victim.take() {
            stage.disks[&victim].empty();
        }
    }

    /// A node that cannot write ends and says why.
    fn may_end_nodes(&self) -> bool {
        true
    }
}
