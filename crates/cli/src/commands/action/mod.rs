//! `flo action`.

mod cancel;
mod delete;
mod disable;
mod dlq;
mod enable;
mod invoke;
mod list;
mod register;
mod report;
mod runs;
mod status;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Register actions, invoke them outside workflows and inspect their runs
#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    Register(register::Register),
    Invoke(invoke::Invoke),
    Status(status::Status),
    Runs(runs::Runs),
    Cancel(cancel::Cancel),
    List(list::List),
    Delete(delete::Delete),
    Enable(enable::Enable),
    Disable(disable::Disable),
    Report(report::Report),
    #[command(subcommand)]
    Dlq(dlq::DlqCommand),
}

impl ActionCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Register(register) => register.run(session).await,
            Self::Invoke(invoke) => invoke.run(session).await,
            Self::Status(status) => status.run(session).await,
            Self::Runs(runs) => runs.run(session).await,
            Self::Cancel(cancel) => cancel.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
            Self::Enable(enable) => enable.run(session).await,
            Self::Disable(disable) => disable.run(session).await,
            Self::Report(report) => report.run(session).await,
            Self::Dlq(dlq) => dlq.run(session).await,
        }
    }
}
