//! The faults of a run, one after the other, each healed before the next.

use super::{Crew, Plan};
use crate::checker::Violation;
use crate::history::{Fault, Recorder};
use crate::stage::{Stage, await_service};
use rand::RngExt;
use std::time::{Duration, Instant};

/// How long all is well between two faults, in milliseconds.
const CALM_MS: std::ops::Range<u64> = 1_000..2_500;

/// What the faults did.
#[derive(Default)]
pub(crate) struct Struck {
    pub(crate) faults: Vec<Fault>,
    /// From each healing until the cluster served again, in milliseconds.
    pub(crate) recoveries_ms: Vec<u64>,
    pub(crate) violations: Vec<Violation>,
}

/// Strikes and heals until the plan's time is over. In the end all is healed.
pub(crate) fn storm(
    plan: &mut Plan,
    stage: &mut Stage,
    (recorder, crew): (&Recorder, &Crew),
    struck: &mut Struck,
) {
    let started = Instant::now();
    while started.elapsed() < plan.pace.duration && struck.faults.len() < plan.pace.strikes_max {
        let calm_ms = stage.random.random_range(CALM_MS);
        crew.wait(Duration::from_millis(calm_ms));
        let started_us = recorder.now();
        let what = plan.nemesis.strike(stage);
        println!("{:>6} ms: {what}", started_us / 1_000);
        crew.wait(plan.nemesis.hold());
        plan.nemesis.heal(stage);
        let ended = stage.raise();
        struck.faults.push(Fault {
            nemesis: plan.nemesis.name().to_owned(),
            what,
            started_us,
            ended_us: recorder.now(),
        });
        if !ended.is_empty() && !plan.nemesis.may_end_nodes() {
            let text = format!("nodes {ended:?} ended by themselves");
            struck.violations.push(Violation::new(text));
        }
        note_recovery(plan, crew, struck);
    }
    // Clients see the end of the last one, too.
    crew.wait(Duration::from_millis(CALM_MS.start));
}

fn note_recovery(plan: &Plan, crew: &Crew, struck: &mut Struck) {
    let served = crew.ask(|client| async move { await_service(&client).await });
    let took = served.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    struck.recoveries_ms.extend(took);
    if served.is_none_or(|served| served > plan.recovery_max) {
        let max = plan.recovery_max;
        let text = format!("expected service within {max:?} of healing, but it took {served:?}");
        struck.violations.push(Violation::new(text));
    }
}
