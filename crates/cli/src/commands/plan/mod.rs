//! `flo plan`.

mod reset;
mod status;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Inspect the executors of plans and reset their state
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    Status(status::Status),
    Reset(reset::Reset),
}

impl PlanCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Status(status) => status.run(session).await,
            Self::Reset(reset) => reset.run(session).await,
        }
    }
}
