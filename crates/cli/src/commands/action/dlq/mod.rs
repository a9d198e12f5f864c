//! `flo action dlq`.

mod list;
mod purge;
mod requeue;
mod show;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// List, requeue and purge the dead letters of an action
#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    List(list::List),
    Show(show::Show),
    Requeue(requeue::Requeue),
    Purge(purge::Purge),
}

impl DlqCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(session).await,
            Self::Show(show) => show.run(session).await,
            Self::Requeue(requeue) => requeue.run(session).await,
            Self::Purge(purge) => purge.run(session).await,
        }
    }
}
