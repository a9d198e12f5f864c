//! `flo bench`.

mod load;
mod report;
mod start;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Measure a cluster
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Start(start::Start),
}

impl BenchCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Start(start) => start.run(session).await,
        }
    }
}
