//! `flo workflow`.

mod activity;
mod cancel;
mod complete_step;
mod create;
mod decision;
mod delete;
mod disable;
mod enable;
mod findings;
mod graph;
mod history;
mod info;
mod invalidate;
mod list;
mod output;
mod report;
mod resume;
mod retry;
mod revision_argument;
mod revisions;
mod runs;
mod schedule;
mod show;
mod signal;
mod start;
mod status;
mod trigger;
mod validate;
mod wait;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Store workflows, start runs and inspect them
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    Create(create::Create),
    Validate(validate::Validate),
    Start(start::Start),
    Status(status::Status),
    Output(output::Output),
    History(history::History),
    Report(report::Report),
    Info(info::Info),
    Signal(signal::Signal),
    Approve(decision::Approve),
    Reject(decision::Reject),
    CompleteStep(complete_step::CompleteStep),
    Cancel(cancel::Cancel),
    Resume(resume::Resume),
    Retry(retry::Retry),
    List(list::List),
    Revisions(revisions::Revisions),
    Runs(runs::Runs),
    Show(show::Show),
    Graph(graph::Graph),
    Enable(enable::Enable),
    Disable(disable::Disable),
    Delete(delete::Delete),
    Schedule(schedule::Schedule),
    Trigger(trigger::Trigger),
    Invalidate(invalidate::Invalidate),
}

impl WorkflowCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::Validate(validate) => validate.run(session),
            Self::Start(start) => start.run(session).await,
            Self::Status(status) => status.run(session).await,
            Self::Output(output) => output.run(session).await,
            Self::History(history) => history.run(session).await,
            Self::Report(report) => report.run(session).await,
            Self::Info(info) => info.run(session).await,
            Self::Signal(signal) => signal.run(session).await,
            Self::Approve(approve) => approve.run(session).await,
            Self::Reject(reject) => reject.run(session).await,
            Self::CompleteStep(complete) => complete.run(session).await,
            Self::Cancel(cancel) => cancel.run(session).await,
            Self::Resume(resume) => resume.run(session).await,
            Self::Retry(retry) => retry.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Revisions(revisions) => revisions.run(session).await,
            Self::Runs(runs) => runs.run(session).await,
            Self::Show(show) => show.run(session).await,
            Self::Graph(graph) => graph.run(session).await,
            Self::Enable(enable) => enable.run(session).await,
            Self::Disable(disable) => disable.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
            Self::Schedule(schedule) => schedule.run(session).await,
            Self::Trigger(trigger) => trigger.run(session).await,
            Self::Invalidate(invalidate) => invalidate.run(session).await,
        }
    }
}
