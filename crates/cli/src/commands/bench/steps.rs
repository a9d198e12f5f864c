//! `flo bench steps`: whole runs of action steps, served by workers of the SDK.

use super::load::{Connections, LoadFlags, Meter, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{Keeping, create_workflow, register_action};
use super::workers::{self, BenchWorkers, Setup};
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::{ActionContext, ActionResult, HandlerError, WorkerBuilder};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The action that increments the number.
pub(super) const ACTION: &str = "flo-bench-step";
/// The index of the stage for the latency of transitions.
const TRANSITION: usize = 0;
/// The stages of the work of a [`Counter`].
pub(super) const STAGES: &[&str] = &["transition"];

/// Measure whole runs of action steps, served by workers
///
/// A run increments a number in each step, and its output is checked. The workers are part of this
/// process, but use the Rust SDK over gRPC as a separate process would. A run's latency is from its
/// start to its end, as its client sees them; a transition's latency is from the end of one step's
/// handler to the call of the next one's.
///
/// With --workers 0 you run the workers yourself, and the first must be connected within --timeout:
/// workers of the action `flo-bench-step` in the same namespace, which answer the input {"n": N, …}
/// with {"n": N + 1, "at": T}, where T is the time in microseconds since 1970. Transitions are
/// measured only with workers of this process.
///
/// Leaves behind: the definition and the action, and the runs until their --retention has passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench steps --steps 3 --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Steps {
    /// Number of steps per run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    steps: u16,

    /// Number of workers in this process, each with a separate connection; 0 to run your own
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u16).range(..=256))]
    workers: u16,

    /// Number of tasks that a worker runs at the same time [default: the number of clients]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    slots: Option<u16>,

    /// Payload bytes in the input of each step, in addition to the number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    keeping: Keeping,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Steps {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, STAGES)?;
        let workflow = match self.payload {
            0 => format!("flo-bench-steps-{}", self.steps),
            _ => format!("flo-bench-steps-{}-with-data", self.steps),
        };
        let retention_ms = self.keeping.retention_ms();
        let source = source(&workflow, retention_ms, self.steps, self.payload > 0);
        // Before the workers start, which may be external ones.
        register_action(bench.client(), ACTION).await?;
        create_workflow(bench.client(), &source).await?;
        if self.workers == 0 {
            workers::wait_for_one(bench.client(), ACTION).await?;
        }
        let setup = Setup {
            connections: Connections::open(session, self.workers)?,
            workers: self.workers,
            slots: self.slots.unwrap_or_else(|| self.load.clients()),
        };
        let counter = Arc::new(Counter::new(bench.meter()));
        let bench_workers =
            BenchWorkers::start(setup, |builder| counter.clone().equip(builder)).await?;
        let runs = Runs {
            workflow,
            steps: self.steps.into(),
            payloads: Payloads::new(self.payload),
        };
        let conditions = Conditions {
            steps_per_run: Some(self.steps.into()),
            payload_bytes: Some(self.payload),
            ..Conditions::new("steps", "runs", "run")
        };
        let measured = bench.measure(runs, conditions).await;
        bench_workers.stop().await;
        measured
    }
}

/// A workflow whose steps pass the number on.
fn source(name: &str, retention_ms: u128, steps: u16, has_data: bool) -> String {
    let mut source = format!(
        "kind: Workflow\nname: {name}\nversion: \"1\"\nretention_ms: {retention_ms}\n\
         start: {{run: \"@actions/{ACTION}\", transitions: {{success: {}, failure: flo.Failed}}}}\n",
        target(2, steps)
    );
    if steps > 1 {
        source.push_str("steps:\n");
    }
    let data = if has_data { ", data: $.input.data" } else { "" };
    let mut before = "start".to_owned();
    for step in 2..=steps {
        source.push_str(&format!(
            "  step-{step}:\n    run: \"@actions/{ACTION}\"\n    \
             inputMapping: {{n: $.steps.{before}.output.n, at: $.steps.{before}.output.at{data}}}\n    \
             transitions: {{success: {}, failure: flo.Failed}}\n",
            target(step + 1, steps)
        ));
        before = format!("step-{step}");
    }
    source
}

/// The target of a transition to this step, or to the end after the last one.
fn target(step: u16, steps: u16) -> String {
    if step > steps {
        "flo.Completed".to_owned()
    } else {
        format!("step-{step}")
    }
}

/// The work of the clients.
struct Runs {
    workflow: String,
    steps: u64,
    payloads: Payloads,
}

impl Work for Runs {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let input = self.payloads.input(piece.number);
        let count = piece.number + self.steps;
        runs::carry_out(piece, &self.workflow, input, count).await
    }
}

/// The input and the output of a step.
#[derive(Debug, Deserialize)]
struct Counted {
    n: u64,
    /// When the previous step ended, in microseconds since the Unix epoch. It travels with the run,
    /// so that no process has to remember it.
    at: Option<u64>,
}

/// The work of the workers.
pub(super) struct Counter {
    meter: Arc<Meter>,
    began: Instant,
    /// The start as a time since the Unix epoch: the wall clock is read only once, so it cannot
    /// jump.
    began_at: Duration,
}

impl Counter {
    /// A counter that notes how long transitions take, if its inputs say when they began.
    pub(super) fn new(meter: Arc<Meter>) -> Self {
        Self {
            meter,
            began: Instant::now(),
            began_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    /// Lets a worker execute the action.
    pub(super) fn equip(self: Arc<Self>, builder: WorkerBuilder) -> WorkerBuilder {
        builder.action(ACTION, move |context| {
            std::future::ready(self.count(&context))
        })
    }

    fn count(&self, context: &ActionContext) -> Result<ActionResult, HandlerError> {
        let Counted { n, at } = context.json()?;
        if let Some(at) = at {
            let latency = self.now_micros().saturating_sub(at);
            self.meter
                .note_stage(TRANSITION, Duration::from_micros(latency));
        }
        let output = format!("{{\"n\":{},\"at\":{}}}", n + 1, self.now_micros());
        Ok(ActionResult::success_json(output))
    }

    fn now_micros(&self) -> u64 {
        let now = self.began_at + self.began.elapsed();
        u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflows_are_valid() {
        for (steps, has_data) in [
            (1, false),
            (2, true),
            (3, false),
            (100, true),
            (1_000, false),
        ] {
            let source = source("flo-bench-steps", 1_000, steps, has_data);
            let findings = flotilla_dsl::parse(&source).findings;
            assert!(findings.is_empty(), "{source}\n{findings:?}");
        }
    }
}
