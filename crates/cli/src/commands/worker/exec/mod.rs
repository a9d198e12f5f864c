//! `flo worker exec`: runs any program as an action (A10).
//!
//! The worker SDK does what every worker does: registration, the stream to the cluster, leases,
//! drain. This module adds what a *command* worker needs. A [`Program`] says what to run; an
//! [`attempt`] runs it once, in a separate process group; [`verdict`] interprets its exit code and
//! output. Dropping an attempt kills the group, and the SDK drops it at the handler timeout, on a
//! cancel and at a hard stop. Messages for the person at the terminal go to stderr: which actions
//! were registered, and what a stopping worker waits for.

mod attempt;
mod captured;
mod ending;
mod process_group;
mod program;
mod record;
mod registration;
mod result_files;
mod stream;
mod task;
mod task_counter;
mod traces;
mod verdict;

use self::program::Program;
use self::registration::Registration;
use self::stream::{Employment, StreamFlags};
use self::task::Task;
use self::task_counter::TaskCounter;
use self::traces::Traces;
use crate::code::Code;
use crate::failure::Failure;
use crate::key_value;
use crate::output::{self, Output};
use crate::session::Session;
use crate::shutdown::Shutdown;
use clap::Args;
use flotilla_client::{ActionContext, Client, Worker, WorkerBuilder};
use flotilla_trace::Endpoint;
use std::ffi::OsString;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  flo worker exec charge -- ./charge.py --live
  flo worker exec --action charge=./charge.py --action ship='curl -sd @- http://ship/'
  flo worker exec --max-retries 0 charge -- ./charge.py
  flo worker exec --stream orders --group billing -- ./bill.py

Two timeouts: --action-timeout-ms kills a program that runs too long; --timeout-ms is the lease: if
it is not renewed, because the worker has died, the task goes to another worker.

The program reads its input from stdin and writes its output to stdout: JSON, or text that becomes a
JSON string. Exit codes:
  0   success, or the outcome that it wrote to the file $FLO_OUTCOME_FILE
  75  pending: a step with `poll` invokes the action again later; otherwise, the outcome is `pending`
  76  accepted: a report with the outcome follows later (only for a step or a plan's executor
      with `tracking: {mode: async}`)
  65  permanent failure
  any other: failure with retry; the last line of stderr is the message

The program can write a patch of the run's state, a JSON object, to the file $FLO_STATE_PATCH, the
delay of the next step, poll or retry, such as 30s, to $FLO_DELAY_FILE, and what it has used, a JSON
object of numbers, to $FLO_USAGE. With exit code 76, these files do not count: the report can have them.

The environment has FLO_RUN_ID, FLO_ACTION, FLO_ATTEMPT, FLO_TASK_ID, FLO_TASK_TOKEN and
FLO_REPORT_URL, and for a traced step TRACEPARENT. Report the outcome of an accepted task with
`flo action report TOKEN --outcome O [JSON]`, or over HTTP:
  curl -H \"Authorization: Bearer $FLO_TASK_TOKEN\" -d '{\"outcome\": \"success\"}' $FLO_REPORT_URL

With --stream, the program reads a record's payload from stdin. Exit code 0 acknowledges the record;
any other redelivers it, after 1 s, then twice as long each time up to 5 min, until it goes to the stream
STREAM.GROUP.dlq. The environment has FLO_STREAM, FLO_GROUP, FLO_RECORD_ID, FLO_ATTEMPT,
FLO_PARTITION_KEY and FLO_HEADERS (JSON).";

/// Run a program for each task of an action or each record of a stream
///
/// Registers missing actions, leaves existing ones unchanged, and prints `ready` once it can
/// receive tasks. SIGTERM or Ctrl-C drains the worker; a second one stops it immediately. Step
/// retries multiply action retries: an action with 3 retries in a step with 3 attempts runs the
/// program up to 12 times.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "flo worker exec [OPTIONS] NAME -- PROGRAM [ARGS]...\n       flo worker exec [OPTIONS] --action NAME='CMD' [--action NAME='CMD']...\n       flo worker exec [OPTIONS] --stream STREAM [--group GROUP] -- PROGRAM [ARGS]..."
)]
pub(crate) struct Exec {
    /// Action that the program runs
    #[arg(
        required_unless_present_any = ["actions", "stream"],
        conflicts_with = "actions",
        requires = "program"
    )]
    name: Option<String>,

    /// Program to run, with its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "actions")]
    program: Vec<OsString>,

    /// Action and the command to run for it with `sh -c`; repeatable
    #[arg(long = "action", value_name = "NAME=CMD", value_parser = key_value::parse_command)]
    actions: Vec<(String, String)>,

    /// Number of tasks to run at the same time
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// Worker id [default: the host name and a random number]
    #[arg(long, value_name = "ID")]
    worker_id: Option<String>,

    /// Label of the worker; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    labels: Vec<(String, String)>,

    /// Maximum run time of a program in milliseconds, independent of the lease; then its process group is killed
    /// and the task fails permanently
    #[arg(
        long,
        value_name = "N",
        default_value_t = 300_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    action_timeout_ms: u64,

    /// Drain grace in milliseconds: how long running programs may take to finish after a stop
    /// signal; then their tasks or records are returned, and the exit code is 4
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    drain_grace_ms: u64,

    /// OTLP/gRPC collector to export task spans to, such as http://127.0.0.1:4317; untraced steps
    /// and stream records have no spans
    #[arg(
        long,
        env = "FLO_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otlp_endpoint: Option<Endpoint>,

    #[command(flatten)]
    registration: Registration,

    #[command(flatten)]
    consumption: StreamFlags,
}

impl Exec {
    pub(crate) async fn run(mut self, session: &Session) -> Result<(), Failure> {
        if self.consumption.is_wanted() {
            return self.consume(session).await;
        }
        let mut shutdown = Shutdown::new()?;
        let programs = programs(
            self.name.take(),
            std::mem::take(&mut self.program),
            std::mem::take(&mut self.actions),
        )?;
        let task_counter = TaskCounter::new("task", self.drain_timeout());
        let output = session.output;
        let builder = self.builder(session.untraced_client()?, &task_counter, output);
        let traces = Traces::start(self.otlp_endpoint.as_ref(), builder.id())?;
        let worker = with_programs(builder, &programs, &task_counter, &traces).build()?;
        tokio::select! {
            prepared = self.prepare(&programs, session) => prepared?,
            () = shutdown.requested() => return Ok(()),
        }
        let work = |drained| worker.run(ending::drain_requested(drained));
        let stop_requested = async || shutdown.requested().await;
        let concluded = ending::run(stop_requested, &task_counter, pending(), work).await;
        traces.stop().await;
        if let Some(conclusion) = concluded? {
            output.note(&conclusion);
        }
        Ok(())
    }

    async fn consume(self, session: &Session) -> Result<(), Failure> {
        let drain_timeout = self.drain_timeout();
        let program = Program::from_words(self.program);
        let program = program.ok_or_else(|| {
            let message = "expected a program after `--`, but it is missing";
            Failure::new(Code::ProgramMissing, message)
        })?;
        let employment = Employment {
            drain_timeout,
            concurrency: self.concurrency,
            worker_id: self.worker_id,
        };
        self.consumption.run(program, employment, session).await
    }

    fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_grace_ms)
    }

    fn builder(&self, client: Client, task_counter: &TaskCounter, output: Output) -> WorkerBuilder {
        let draining = task_counter.clone();
        let mut builder = Worker::builder(client)
            .concurrency(self.concurrency)
            .action_timeout(Duration::from_millis(self.action_timeout_ms))
            .drain_grace(self.drain_timeout())
            .on_ready(say_ready)
            .on_drain(move |in_flight| output.note(&draining.start_drain(in_flight)));
        if let Some(worker_id) = &self.worker_id {
            builder = builder.worker_id(worker_id);
        }
        for (key, value) in &self.labels {
            builder = builder.label(key, value);
        }
        builder
    }

    /// Checks all programs before it changes anything in the cluster.
    async fn prepare(
        &self,
        programs: &[(String, Arc<Program>)],
        session: &Session,
    ) -> Result<(), Failure> {
        for (action, program) in programs {
            program.check(&format!("run action {action:?}")).await?;
        }
        let client = session.client()?;
        for (action, _) in programs {
            let registration = &self.registration;
            registration
                .register(&client, action, session.output)
                .await?;
        }
        Ok(())
    }
}

fn with_programs(
    mut builder: WorkerBuilder,
    programs: &[(String, Arc<Program>)],
    task_counter: &TaskCounter,
    traces: &Traces,
) -> WorkerBuilder {
    for (name, program) in programs {
        let (program, task_counter, traces) =
            (program.clone(), task_counter.clone(), traces.clone());
        builder = builder.action(name, move |context: ActionContext| {
            let mut task = Task::new(&context);
            let (program, traces) = (program.clone(), traces.clone());
            let running = task_counter.begin(task.to_string());
            async move {
                let span = traces.begin(&task);
                if let Some(span) = &span {
                    task.traceparent = Some(span.traceparent());
                }
                let result = attempt::run(&program, &task).await;
                if let Some(span) = span {
                    traces.end(span, &result);
                }
                running.end();
                result
            }
        });
    }
    builder
}

/// The program to run for each action.
fn programs(
    name: Option<String>,
    program: Vec<OsString>,
    actions: Vec<(String, String)>,
) -> Result<Vec<(String, Arc<Program>)>, Failure> {
    let mut programs: Vec<(String, Arc<Program>)> = Vec::new();
    if let (Some(name), Some(program)) = (name, Program::from_words(program)) {
        programs.push((name, Arc::new(program)));
    }
    for (name, command) in actions {
        if programs.iter().any(|(known, _)| *known == name) {
            let message = format!("expected one command for action {name}, but it has two");
            return Err(Failure::new(Code::ActionRepeated, message));
        }
        programs.push((name, Arc::new(Program::from_shell(&command))));
    }
    Ok(programs)
}

/// Prints `ready`: tasks may now arrive. A closed stdout is not an error.
fn say_ready() {
    let _ = output::write("ready\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_one_command() {
        let action = |name: &str| (name.to_owned(), "true".to_owned());
        let two = vec![action("a"), action("b")];
        assert_eq!(programs(None, Vec::new(), two).expect("two").len(), 2);
        let twice = vec![action("a"), action("a")];
        let failure = programs(None, Vec::new(), twice).expect_err("twice the same");
        assert_eq!(failure.code(), "action_repeated");
        let words = vec!["true".into()];
        let one = programs(Some("a".to_owned()), words, Vec::new()).expect("one");
        assert_eq!(one.len(), 1);
    }
}
