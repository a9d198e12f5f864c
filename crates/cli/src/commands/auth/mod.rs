//! `flo auth`.

mod disable;
mod dry_run;
mod enable;
mod mode;
mod recover;
mod whoami;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Show your identity, and open or close the cluster
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    Whoami(whoami::WhoAmI),
    Enable(enable::Enable),
    Disable(disable::Disable),
    Recover(recover::Recover),
}

impl AuthCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Whoami(whoami) => whoami.run(session).await,
            Self::Enable(enable) => enable.run(session).await,
            Self::Disable(disable) => disable.run(session).await,
            Self::Recover(recover) => recover.run(session).await,
        }
    }
}
