//! `flo bench parallel` and `flo bench foreach`: whole runs whose steps are executed concurrently, served by workers of the
//! SDK.

use super::load::{Connections, LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{Keeping, create_workflow, register_action};
use super::steps::{ACTION, Counter};
use super::workers::{BenchWorkers, Setup};
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use std::fmt::Write;
use std::sync::Arc;
use tokio::time::Instant;

/// Measure whole runs with parallel branches, served by workers
///
/// Each branch executes an action and adds to the state; the sum is checked. The workers are part of
/// this process, but use the Rust SDK over gRPC as a separate process would. A run's latency is from
/// its start to its end, as its client sees them.
///
/// Leaves behind: the definition and the action, and the runs until their --retention has passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench parallel --branches 8 --clients 16 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Parallel {
    /// Number of branches per run
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    branches: u16,

    #[command(flatten)]
    concurrent: Concurrent,
}

/// Measure whole runs that loop over items, served by workers
///
/// Each iteration executes an action and adds to the state; the sum is checked. The workers are part
/// of this process, but use the Rust SDK over gRPC as a separate process would. A run's latency is
/// from its start to its end, as its client sees them.
///
/// Leaves behind: the definition and the action, and the runs until their --retention has passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench foreach --items 1000 --concurrency 100 --clients 1 --seconds 10"
)]
pub(crate) struct Foreach {
    /// Number of items per run
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    items: u16,

    /// Maximum number of iterations of a run at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    concurrency: u16,

    #[command(flatten)]
    concurrent: Concurrent,
}

/// What both have in common.
#[derive(Debug, Args)]
struct Concurrent {
    /// Number of workers in this process, each with a separate connection
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,

    /// Number of tasks that a worker runs at the same time
    #[arg(long, value_name = "T", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    slots: u16,

    #[command(flatten)]
    keeping: Keeping,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Parallel {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let runs = Runs::new("parallel", self.branches);
        let source = runs.source(&self.concurrent, &parallel(self.branches));
        self.concurrent.run(session, runs, &source).await
    }
}

impl Foreach {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let runs = Runs::new("foreach", self.items);
        let source = runs.source(&self.concurrent, &foreach(self.items, self.concurrency));
        self.concurrent.run(session, runs, &source).await
    }
}

impl Concurrent {
    async fn run(self, session: &Session, runs: Runs, source: &str) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, &[])?;
        register_action(bench.client(), ACTION).await?;
        create_workflow(bench.client(), source).await?;
        let setup = Setup {
            connections: Connections::open(session, self.workers)?,
            workers: self.workers,
            slots: self.slots,
        };
        let counter = Arc::new(Counter::new(bench.meter()));
        let workers = BenchWorkers::start(setup, |builder| counter.clone().equip(builder)).await?;
        let conditions = Conditions {
            steps_per_run: Some(runs.steps),
            ..Conditions::new(runs.workload, "runs", "run")
        };
        let measured = bench.measure(runs, conditions).await;
        workers.stop().await;
        measured
    }
}

/// The work of the clients.
struct Runs {
    workload: &'static str,
    workflow: String,
    /// Steps with an action per run.
    steps: u16,
}

impl Runs {
    fn new(workload: &'static str, steps: u16) -> Self {
        Self {
            workload,
            workflow: format!("flo-bench-{workload}-{steps}"),
            steps,
        }
    }

    /// A workflow that counts how often its only step has executed the action.
    fn source(&self, concurrent: &Concurrent, step: &str) -> String {
        let (name, retention_ms) = (&self.workflow, concurrent.keeping.retention_ms());
        format!(
            "kind: Workflow\nname: {name}\nversion: \"1\"\nretention_ms: {retention_ms}\n\
             state: {{done: 0}}\noutput: {{n: {{cel: \"input.n + state.done\"}}}}\nsteps:\n  - name: all\n{step}"
        )
    }
}

/// The lines of a step with branches.
fn parallel(branches: u16) -> String {
    let mut step = "    parallel:\n      merge: {done: sum}\n      branches:\n".to_owned();
    for branch in 1..=branches {
        writeln!(
            step,
            "        b-{branch}: {{run: \"@actions/{ACTION}\", inputMapping: {{n: $.input.n}}, set: {{done: 1}}}}"
        )
        .expect("a string takes any text");
    }
    step
}

/// The lines of a step with a loop.
fn foreach(items: u16, concurrency: u16) -> String {
    let items: Vec<String> = (0..items).map(|item| item.to_string()).collect();
    let items = items.join(",");
    format!(
        "    forEach:\n      items: [{items}]\n      concurrency: {concurrency}\n      collect: none\n      \
         merge: {{done: sum}}\n      \
         do: {{run: \"@actions/{ACTION}\", inputMapping: {{n: $.item}}, set: {{done: 1}}}}\n"
    )
}

impl Work for Runs {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let input = Payloads::new(0).input(piece.number);
        let count = piece.number + u64::from(self.steps);
        runs::carry_out(piece, &self.workflow, input, count).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        concurrent: Concurrent,
    }

    #[test]
    fn the_workflows_are_valid() {
        let Flags { concurrent } = Flags::parse_from(["bench"]);
        for (workload, steps, step) in [
            ("parallel", 1, parallel(1)),
            ("parallel", 64, parallel(64)),
            ("foreach", 1, foreach(1, 1)),
            ("foreach", 10_000, foreach(10_000, 100)),
        ] {
            let source = Runs::new(workload, steps).source(&concurrent, &step);
            let findings = flotilla_dsl::parse(&source).findings;
            assert!(findings.is_empty(), "{workload} {steps}: {findings:?}");
        }
    }
}
