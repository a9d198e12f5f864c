//! A full disk, nearly full disks, and a slow disk.

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
            // The node must not notice it beforehand.
            flags: &["--disk-reserve-bytes=0"],
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

    /// A node that cannot write stops with an error.
    fn may_end_nodes(&self) -> bool {
        true
    }
}

/// The reserve of the nodes, configured by `LowDisk`, and how much of it remains.
const RESERVE_FLAG: &str = "--disk-reserve-bytes=67108864";
pub(crate) const LEFT_BYTES: u64 = 24 << 20;

/// Nodes with small disks, of which they keep a reserve.
pub(crate) fn reserving_nodes() -> Needs {
    Needs {
        small_disks: true,
        flags: &[RESERVE_FLAG],
        ..Needs::default()
    }
}

/// Fills the disk of one node, or of all, until every write that can be refused is refused. No
/// node may stop.
#[derive(Default)]
pub(super) struct LowDisk {
    victims: Vec<u64>,
}

impl Nemesis for LowDisk {
    fn name(&self) -> &'static str {
        "disk-low"
    }

    fn needs(&self) -> Needs {
        reserving_nodes()
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        self.victims = match stage.random.random_bool(0.5) {
            true => vec![drawn(stage)],
            false => stage.disks.keys().copied().collect(),
        };
        for victim in &self.victims {
            stage.disks[victim].fill_but(LEFT_BYTES);
        }
        format!("the disks of nodes {:?} are nearly full", self.victims)
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        for victim in self.victims.drain(..) {
            stage.disks[&victim].empty();
        }
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

/// The leader, or a follower.
fn drawn(stage: &mut Stage) -> u64 {
    match stage.random.random_bool(0.5) {
        true => stage.leader(),
        false => a_follower(stage).unwrap_or(1),
    }
}
