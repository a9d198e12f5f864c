//! Several faults at a time, drawn from the seed.

use super::clock::Clock;
use super::disk::SlowDisk;
use super::kill::Kill;
use super::links::Links;
use super::partition::Partition;
use super::pause::Pause;
use super::{Needs, Nemesis};
use crate::network::Wanted;
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Draws one or two faults for each strike.
pub(super) struct Combined {
    nemeses: Vec<Box<dyn Nemesis>>,
    active: Vec<usize>,
}

impl Default for Combined {
    fn default() -> Self {
        Self {
            nemeses: vec![
                Box::new(Links::slow()),
                Box::new(Links::lossy()),
                Box::new(Clock::jump()),
                Box::new(Clock::drift()),
                Box::new(SlowDisk::default()),
                Box::new(Partition::leader()),
                Box::new(Partition::one_way()),
                Box::new(Partition::bridge()),
                Box::new(Pause::leader()),
                Box::new(Pause::follower()),
                Box::new(Kill::leader()),
                Box::new(Kill::follower()),
                Box::new(Kill::all()),
            ],
            active: Vec::new(),
        }
    }
}

impl Nemesis for Combined {
    fn name(&self) -> &'static str {
        "combined"
    }

    fn needs(&self) -> Needs {
        Needs {
            network: Wanted::Shaped,
            flags: &["--snapshot-log-bytes=262144", "--max-log-bytes=524288"],
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let first = stage.random.random_range(0..self.nemeses.len());
        let second = stage.random.random_range(0..self.nemeses.len());
        // In the order of the list: faults that end processes come last, so that no other fault hits a node
        // that is gone.
        self.active = vec![first.min(second), first.max(second)];
        self.active.dedup();
        let mut told = Vec::new();
        for &index in &self.active {
            told.push(self.nemeses[index].strike(stage));
        }
        told.join("; ")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        for index in std::mem::take(&mut self.active) {
            self.nemeses[index].heal(stage);
        }
    }
}
