//! `flo cluster quarantine`.

mod list;
mod retry;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// See what was set aside after a bug, and take it up again
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    List(list::List),
    Retry(retry::Retry),
}

impl QuarantineCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(session).await,
            Self::Retry(retry) => retry.run(session).await,
        }
    }
}
