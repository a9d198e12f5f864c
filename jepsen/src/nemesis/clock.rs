//! Wrong wall clocks: they jump, or run too fast or too slow.

use super::Nemesis;
use super::kill::a_follower;
use crate::stage::Stage;
use rand::RngExt;
use std::time::Duration;

/// Makes the wall clocks of nodes wrong.
pub(super) struct Clock {
    is_jump: bool,
}

/// How far a clock jumps, in either direction. In milliseconds.
const JUMP_MS_MAX: i64 = 3_600_000;
/// How much too fast or too slow clocks run, in thousandths: far worse than any crystal.
const DRIFT_PER_MILLE_MAX: i64 = 300;

impl Clock {
    pub(super) fn jump() -> Self {
        Self { is_jump: true }
    }

    pub(super) fn drift() -> Self {
        Self { is_jump: false }
    }
}

impl Nemesis for Clock {
    fn name(&self) -> &'static str {
        match self.is_jump {
            true => "clock-jump",
            false => "clock-drift",
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        if self.is_jump {
            // A single clock, so that no majority agrees with it.
            let leads = stage.random.random_bool(0.5);
            let victim = match leads {
                true => stage.leader(),
                false => a_follower(stage).unwrap_or(1),
            };
            let offset_ms = stage.random.random_range(-JUMP_MS_MAX..JUMP_MS_MAX);
            stage.set_clock(victim, offset_ms);
            return format!("the clock of node {victim} jumps by {offset_ms} ms");
        }
        let mut told = Vec::new();
        for id in stage.ids() {
            let per_mille = stage
                .random
                .random_range(-DRIFT_PER_MILLE_MAX..DRIFT_PER_MILLE_MAX);
            stage.set_drift(id, per_mille);
            told.push((id, per_mille));
        }
        format!("the clocks run too fast by {told:?} thousandths")
    }

    fn hold(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn heal(&mut self, stage: &mut Stage) {
        for id in stage.ids() {
            stage.set_clock(id, 0);
        }
    }
}
