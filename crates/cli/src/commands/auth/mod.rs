//! `flo auth`.

mod whoami;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Show who you are to the cluster
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    Whoami(whoami::WhoAmI),
}

impl AuthCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Whoami(whoami) => whoami.run(session).await,
        }
    }
}
