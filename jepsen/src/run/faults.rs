//! Injects the faults of a run, one after the other; each is healed before the next.

use super::{Participants, Plan};
use crate::checker::Violation;
use crate::history::Fault;
use crate::stage::{Stage, await_service};
use rand::RngExt;
use std::time::{Duration, Instant};

/// How long the cluster is healthy between two faults, in milliseconds.
const CALM_MS: std::ops::Range<u64> = 1_000..2_500;

/// The effects of the faults.
#[derive(Default)]
pub(crate) struct Struck {
    pub(crate) faults: Vec<Fault>,
    /// The time from each healing until the cluster served again, in milliseconds.
    pub(crate) recoveries_ms: Vec<u64>,
    pub(crate) violations: Vec<Violation>,
}

/// Injects and heals faults until the plan's time is over. At the end all are healed.
pub(crate) fn storm(
    plan: &mut Plan,
    stage: &mut Stage,
    participants: &Participants,
    struck: &mut Struck,
) {
    let started = Instant::now();
    while started.elapsed() < plan.pace.duration && struck.faults.len() < plan.pace.strikes_max {
        let calm_ms = stage.random.random_range(CALM_MS);
        participants.wait(Duration::from_millis(calm_ms));
        let started_us = participants.now();
        let what = plan.nemesis.strike(stage);
        println!("{:>6} ms: {what}", started_us / 1_000);
        participants.wait(plan.nemesis.hold());
        plan.nemesis.heal(stage);
        let ended = stage.raise();
        struck.faults.push(Fault {
            nemesis: plan.nemesis.name().to_owned(),
            what,
            started_us,
            ended_us: participants.now(),
        });
        if !ended.is_empty() && !plan.nemesis.may_end_nodes() {
            let text = format!("nodes {ended:?} ended by themselves");
            struck.violations.push(Violation::new(text));
        }
        note_recovery(plan, participants, struck);
    }
    // Clients see the last healing, too.
    participants.wait(Duration::from_millis(CALM_MS.start));
}

fn note_recovery(plan: &Plan, participants: &Participants, struck: &mut Struck) {
    let served = participants.ask(|client| async move { await_service(&client).await });
    let took = served.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    struck.recoveries_ms.extend(took);
    if served.is_none_or(|served| served > plan.recovery_max) {
        let max = plan.recovery_max;
        let text = format!("expected service within {max:?} of healing, but it took {served:?}");
        struck.violations.push(Violation::new(text));
    }
}
