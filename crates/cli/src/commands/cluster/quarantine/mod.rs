//! `flo cluster quarantine`.

mod list;
mod release;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// List quarantined items and return them to service
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    List(list::List),
    Release(release::Release),
}

impl QuarantineCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(session).await,
            Self::Release(release) => release.run(session).await,
        }
    }
}
