//! `flo worker`.

mod drain;
mod exec;
mod info;
mod list;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Run programs as workers, and manage the workers of the cluster
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    Exec(Box<exec::Exec>),
    List(list::List),
    Info(info::Info),
    Drain(drain::Drain),
}

impl WorkerCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Exec(exec) => exec.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Info(info) => info.run(session).await,
            Self::Drain(drain) => drain.run(session).await,
        }
    }
}
