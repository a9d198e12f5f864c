//! `flo cluster`.

mod status;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// See how the cluster is
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    Status(status::Status),
}

impl ClusterCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Status(status) => status.run(session).await,
        }
    }
}
