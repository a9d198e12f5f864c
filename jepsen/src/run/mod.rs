//! A run: workloads and a nemesis on a stage, then healing, final reads and the verdict.

mod faults;
mod judge;
mod participants;
mod plan;

pub use plan::{Pace, Plan};

use self::faults::Struck;
use self::participants::Participants;
use crate::checker::Violation;
use crate::history::{History, Recorder};
use crate::report::Report;
use crate::stage::Stage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Runs a plan, and keeps history and logs if a check fails.
#[must_use]
pub fn run(mut plan: Plan) -> Report {
    println!("{}", plan.line());
    let started = Instant::now();
    let needs = plan.nemesis.needs();
    let stage = catch(|| Stage::set(&needs, plan.seed, &plan.environment()));
    let mut stage = match stage {
        Ok(stage) => stage,
        Err(violation) => return Report::without_stage(&plan, violation),
    };
    let recorder = Arc::new(Recorder::default());
    let mut events = Events::default();
    let played = catch(|| play(&mut plan, &mut stage, &recorder, &mut events));
    let Events {
        mut struck,
        mut history,
    } = events;
    if played.is_err() {
        stage.describe_threads();
        if history.work_until_us == 0 {
            history.work_until_us = recorder.now();
        }
    }
    history.operations = recorder.operations();
    history.faults = std::mem::take(&mut struck.faults);
    let mut violations = std::mem::take(&mut struck.violations);
    violations.extend(played.err());
    violations.extend(judge::panics(&stage));
    for workload in &plan.workloads {
        if history.final_reads.contains_key(workload.name()) {
            let found = workload.check(&history).into_iter();
            let found = found.chain(judge::nothing_done(&history, workload.name()));
            violations
                .extend(found.map(|one| Violation::new(format!("{}: {one}", workload.name()))));
        }
    }
    let mut report = Report::new(&plan, &history, struck.recoveries_ms, violations);
    report.remarks = stage.remarks.clone();
    report.seconds = started.elapsed().as_secs();
    if !report.violations.is_empty() || plan.keep {
        report.keep(&plan.folder, &history, &stage.logs());
    }
    report
}

/// What happened on the stage so far; it is judged even if the play panics.
#[derive(Default)]
struct Events {
    struck: Struck,
    history: History,
}

/// Everything that happens on the stage.
fn play(plan: &mut Plan, stage: &mut Stage, recorder: &Arc<Recorder>, events: &mut Events) {
    let Events { struck, history } = events;
    let flo = stage.cluster.flo();
    for workload in &plan.workloads {
        workload.prepare(&flo);
    }
    let participants = Participants::begin(plan, stage.nodes(), recorder);
    faults::storm(plan, stage, &participants, struck);
    participants.stop_clients();
    history.work_until_us = recorder.now();
    stage.cluster.await_health();
    history.final_reads = participants.final_reads(plan, &mut struck.violations);
    participants.stop_workers();
    // Replicas that differ make this panic, which is a violation.
    let digest = stage.cluster.agreement();
    println!("all nodes have digest {} at {}", digest.value, digest.index);
}

/// Runs a function of the harness, which panics when the cluster is not as it must be.
fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Violation::new(text.unwrap_or_else(|| "the run panicked without a message".to_owned()))
    })
}
