//! SIGSTOP, longer than any leader lease, then SIGCONT: a node that does not notice that time has
//! passed.

use super::Nemesis;
use super::kill::a_follower;
use crate::stage::Stage;
use std::time::Duration;

/// Pauses a node and resumes it.
pub(super) struct Pause {
    is_leader: bool,
    victim: Option<u64>,
}

impl Pause {
    pub(super) fn leader() -> Self {
        Self {
            is_leader: true,
            victim: None,
        }
    }

    pub(super) fn follower() -> Self {
        Self {
            is_leader: false,
            victim: None,
        }
    }
}

impl Nemesis for Pause {
    fn name(&self) -> &'static str {
        match self.is_leader {
            true => "pause-leader",
            false => "pause-follower",
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        self.victim = match self.is_leader {
            true => Some(stage.leader()),
            false => a_follower(stage),
        };
        if let Some(victim) = self.victim {
            stage.cluster.node(victim).pause();
        }
        format!("SIGSTOP {:?}", self.victim)
    }

    fn hold(&self) -> Duration {
        // A leader lease is shorter than a second.
        Duration::from_secs(4)
    }

    fn heal(&mut self, stage: &mut Stage) {
        if let Some(victim) = self.victim.take() {
            stage.cluster.node(victim).resume();
        }
    }
}
