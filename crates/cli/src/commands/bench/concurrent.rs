//! `flo bench parallel` and `flo bench foreach`: whole runs whose steps are executed concurrently, served by workers of the
//! SDK.

use super::load::{Connections, LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{Keeping, create_workflow, register_action};
use super::steps::{ACTION, Counter, STAGES};
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
/// Each step of an iteration executes an action, and the last one adds to the state; the sum is
/// checked. The workers are part of this process, but use the Rust SDK over gRPC as a separate process
/// would. A run's latency is from its start to its end, as its client sees them; a transition's latency
/// is from the end of one step's handler to the call of the next one's in the same iteration.
///
/// With --branches, each of the parallel branches runs its own loop over the items. A run can have at
/// most 1,000 active steps: 1 + CONCURRENCY, or 1 + BRANCHES × (1 + CONCURRENCY) with --branches.
///
/// Leaves behind: the definition and the action, and the runs until their --retention has passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo bench foreach --items 1000 --concurrency 100 --clients 1 --seconds 10\n  flo bench foreach --branches 27 --items 180 --concurrency 36 --steps 2 --slots 1000 --clients 1"
)]
pub(crate) struct Foreach {
    /// Number of items of each loop
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    items: u16,

    /// Maximum number of iterations of each loop at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    concurrency: u16,

    /// Number of parallel branches per run, each with a loop [default: one loop without branches]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u16).range(1..=64))]
    branches: Option<u16>,

    /// Number of steps of each iteration, one after the other
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    steps: u16,

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
        let runs = Runs::new("parallel", &self.branches.to_string(), self.branches.into());
        let source = runs.source(&self.concurrent, &parallel(self.branches));
        self.concurrent.run(session, runs, &source).await
    }
}

impl Foreach {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let runs = Runs::new("foreach", &self.shape(), self.steps_per_run());
        let source = runs.source(&self.concurrent, &self.step());
        self.concurrent.run(session, runs, &source).await
    }

    fn steps_per_run(&self) -> u32 {
        let loops = u32::from(self.branches.unwrap_or(1));
        loops * u32::from(self.items) * u32::from(self.steps)
    }

    /// What makes its workflow another one.
    fn shape(&self) -> String {
        let loops = self.branches.unwrap_or(1);
        format!("{loops}x{}x{}", self.items, self.steps)
    }

    /// The lines of a step with a loop, or with a loop in each branch.
    fn step(&self) -> String {
        match self.branches {
            Some(branches) => in_branches(branches, |branch| {
                format!("{{forEach: {}}}", self.body(branch))
            }),
            None => format!("    forEach: {}\n", self.body(1)),
        }
    }

    /// The loop of a branch, on one line.
    fn body(&self, branch: u16) -> String {
        let items: Vec<String> = (0..self.items).map(|item| item.to_string()).collect();
        let steps: Vec<String> = (1..=self.steps)
            .map(|step| self.step_of_item(branch, step))
            .collect();
        format!(
            "{{items: [{}], concurrency: {}, collect: none, merge: {{done: sum}}, do: [{}]}}",
            items.join(","),
            self.concurrency,
            steps.join(", ")
        )
    }

    /// A step of an iteration. Only the last one writes `done`, with the number of steps: a write by each step would
    /// overwrite the previous one.
    fn step_of_item(&self, branch: u16, step: u16) -> String {
        let at = match step {
            1 => String::new(),
            _ => format!(", at: $.steps.b-{branch}-{}.output.at", step - 1),
        };
        let set = match step == self.steps {
            true => format!(", set: {{done: {step}}}"),
            false => String::new(),
        };
        format!(
            "{{name: b-{branch}-{step}, run: \"@actions/{ACTION}\", inputMapping: {{n: $.item{at}}}{set}}}"
        )
    }
}

impl Concurrent {
    async fn run(self, session: &Session, runs: Runs, source: &str) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, STAGES)?;
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
    steps: u32,
}

impl Runs {
    fn new(workload: &'static str, shape: &str, steps: u32) -> Self {
        Self {
            workload,
            workflow: format!("flo-bench-{workload}-{shape}"),
            steps,
        }
    }

    /// The definition of a workflow with one top-level step. Its output adds the number of executed actions to the input.
    fn source(&self, concurrent: &Concurrent, step: &str) -> String {
        let (name, retention_ms) = (&self.workflow, concurrent.keeping.retention_ms());
        format!(
            "kind: Workflow\nname: {name}\nversion: \"1\"\nretention_ms: {retention_ms}\n\
             state: {{done: 0}}\noutput: {{n: {{cel: \"input.n + state.done\"}}}}\nsteps:\n  - name: all\n{step}"
        )
    }
}

/// The lines of a step with branches, each of which executes the action once.
fn parallel(branches: u16) -> String {
    in_branches(branches, |_| {
        format!("{{run: \"@actions/{ACTION}\", inputMapping: {{n: $.input.n}}, set: {{done: 1}}}}")
    })
}

/// The lines of a step with this many branches.
fn in_branches(branches: u16, content: impl Fn(u16) -> String) -> String {
    let mut step = "    parallel:\n      merge: {done: sum}\n      branches:\n".to_owned();
    for branch in 1..=branches {
        writeln!(step, "        b-{branch}: {}", content(branch)).expect("a string takes any text");
    }
    step
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
        foreach: Foreach,
    }

    fn foreach(line: &str) -> Foreach {
        Flags::parse_from(line.split(' ')).foreach
    }

    /// The codes of what is wrong with a workflow.
    fn findings(workload: &'static str, step: &str) -> Vec<String> {
        let Foreach { concurrent, .. } = foreach("bench");
        let source = Runs::new(workload, "sample", 1).source(&concurrent, step);
        let findings = flotilla_dsl::parse(&source).findings;
        let codes = findings.iter().map(|finding| finding.code.to_string());
        codes.collect()
    }

    #[test]
    fn the_workflows_are_valid() {
        for branches in [1, 64] {
            let found = findings("parallel", &parallel(branches));
            assert_eq!(found, [""; 0], "{branches}");
        }
        for line in [
            "bench --items 1 --concurrency 1",
            "bench --items 10000 --concurrency 100",
            "bench --items 180 --concurrency 36 --branches 27 --steps 2",
        ] {
            let foreach = foreach(line);
            let found = findings("foreach", &foreach.step());
            assert_eq!(found, [""; 0], "{line}");
        }
    }

    #[test]
    fn one_more_iteration_per_loop_exceeds_the_maximum_of_active_steps() {
        // 1 + 27 × (1 + 36) = 1,000 is the maximum; a concurrency of 37 exceeds it.
        let foreach = foreach("bench --branches 27 --concurrency 37 --steps 2 --items 180");
        assert_eq!(foreach.steps_per_run(), 9_720);
        let found = findings("foreach", &foreach.step());
        assert_eq!(found, ["E520"]);
    }
}
