//! A disk without room, and a disk that is slow.

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
        let victim = drawn(stage);
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

/// Makes the disk of one node slow.
#[derive(Default)]
pub(super) struct SlowDisk {
    victim: Option<u64>,
}

impl Nemesis for SlowDisk {
    fn name(&self) -> &'static str {
        "slow-fsync"
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let victim = drawn(stage);
        self.victim = Some(victim);
        let delay_ms = stage.random.random_range(50..600);
        stage.set_fsync_delay(victim, Duration::from_millis(delay_ms));
        format!("the log of node {victim} is durable only after {delay_ms} ms")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        if let Some(victim) = self.victim.take() {
            stage.set_fsync_delay(victim, Duration::ZERO);
        }
    }
}

/// The leader, or one that follows.
fn drawn(stage: &mut Stage) -> u64 {
    match stage.random.random_bool(0.5) {
        true => stage.leader(),
        false => a_follower(stage).unwrap_or(1),
    }
}
