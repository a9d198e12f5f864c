//! `flo worker exec`: any program is an action (A10).
//!
//! The worker SDK does what every worker does: registering, the stream, leases, drain. Here is what
//! a *command* worker adds. A [`Program`] says what to run; an [`attempt`] runs it once, in a process
//! group of its own; [`verdict`] reads its exit code and output. Dropping an attempt kills the group,
//! and the SDK drops it at the handler timeout, on a cancel and at a hard stop.

mod attempt;
mod captured;
mod process_group;
mod program;
mod task;
mod verdict;

use self::program::Program;
use self::task::{ReportUrl, Task};
use crate::failure::Failure;
use crate::key_value;
use crate::output;
use crate::session::Session;
use crate::shutdown::Shutdown;
use clap::Args;
use flotilla_client::{ActionContext, Client, Worker};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  flo worker exec charge -- ./charge.py --live
  flo worker exec --action charge=./charge.py --action ship='curl -sd @- http://ship/'

The program reads its input on stdin and writes its output to stdout: JSON, or text that becomes a
JSON string. Exit codes:
  0   success, or the outcome that it wrote to the file $FLO_OUTCOME_FILE
  75  pending: ask again later
  65  failed for good
  any other: failed, to be tried again; the last line of stderr is the message
It also finds FLO_RUN_ID, FLO_ACTION, FLO_ATTEMPT, FLO_TASK_ID, FLO_TASK_TOKEN and FLO_REPORT_URL.";

/// Run programs as actions
///
/// Registers the actions that are missing, prints `ready` once tasks may come, and drains on
/// SIGTERM or Ctrl-C.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "flo worker exec [OPTIONS] NAME -- PROGRAM [ARGS]...\n       flo worker exec [OPTIONS] --action NAME='CMD' [--action NAME='CMD']..."
)]
pub(crate) struct Exec {
    /// The action that the program runs
    #[arg(
        required_unless_present = "actions",
        conflicts_with = "actions",
        requires = "program"
    )]
    name: Option<String>,

    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", requires = "name")]
    program: Vec<OsString>,

    /// An action and its command for `sh -c`; may be repeated
    #[arg(long = "action", value_name = "NAME=CMD", value_parser = key_value::parse)]
    actions: Vec<(String, String)>,

    /// How many tasks run at a time
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// The worker's id [default: the host's name and a random number]
    #[arg(long, value_name = "ID")]
    worker_id: Option<String>,

    /// A label of the worker; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    labels: Vec<(String, String)>,

    /// How long a program may run; then its process group is killed and the task fails for good
    #[arg(
        long,
        value_name = "N",
        default_value_t = 300_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    action_timeout_ms: u64,
}

impl Exec {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mut shutdown = Shutdown::new()?;
        let report_url = Arc::new(ReportUrl::of(session.endpoints()));
        let worker = self.worker(session.client()?, &report_url)?;
        worker
            .run(async move { shutdown.requested().await })
            .await?;
        Ok(())
    }

    fn worker(self, client: Client, report_url: &Arc<ReportUrl>) -> Result<Worker, Failure> {
        let mut builder = Worker::builder(client)
            .concurrency(self.concurrency)
            .action_timeout(Duration::from_millis(self.action_timeout_ms))
            .on_ready(say_ready);
        if let Some(worker_id) = self.worker_id {
            builder = builder.worker_id(worker_id);
        }
        for (key, value) in self.labels {
            builder = builder.label(key, value);
        }
        for (name, program) in programs(self.name, self.program, self.actions)? {
            let program = Arc::new(program);
            let report_url = report_url.clone();
            builder = builder.action(name, move |context: ActionContext| {
                let task = Task::new(&context, &report_url);
                let program = program.clone();
                async move { attempt::run(&program, &task).await }
            });
        }
        Ok(builder.build()?)
    }
}

/// What to run for each action.
fn programs(
    name: Option<String>,
    program: Vec<OsString>,
    actions: Vec<(String, String)>,
) -> Result<Vec<(String, Program)>, Failure> {
    let mut programs: Vec<(String, Program)> = Vec::new();
    if let (Some(name), Some(program)) = (name, Program::from_words(program)) {
        programs.push((name, program));
    }
    for (name, command) in actions {
        if programs.iter().any(|(known, _)| *known == name) {
            let message = format!("expected one command for action {name}, but there are two");
            return Err(Failure::usage("action_repeated", message));
        }
        programs.push((name, Program::from_shell(&command)));
    }
    Ok(programs)
}

/// Tells whoever started the worker that tasks may come. Nobody may be listening.
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
