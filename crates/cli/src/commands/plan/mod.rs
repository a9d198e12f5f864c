//! `flo plan`.

mod reset;
mod status;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// See how the executors of plans fare, and give them a fresh chance
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
