//! `flo ns quota`.

mod preset;
mod scope;
mod set;
mod show;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Show and change how much namespaces may use
#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    Show(show::Show),
    Set(set::Set),
}

impl QuotaCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Show(show) => show.run(session).await,
            Self::Set(set) => set.run(session).await,
        }
    }
}
