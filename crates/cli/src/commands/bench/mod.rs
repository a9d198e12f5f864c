//! `flo bench`: loads for a cluster, one file each, and what they measure.
//!
//! A workload is a [`Work`](load::Work): something that is done over and over. [`load`] does it at the
//! pace that was asked for, and notes how long it took; [`report`] makes figures of that.

mod completion;
mod load;
mod measurement;
mod payload;
mod report;
mod setup;
mod start;
mod steps;
mod workers;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Measure a cluster
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Start(start::Start),
    Steps(steps::Steps),
}

impl BenchCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Start(start) => start.run(session).await,
            Self::Steps(steps) => steps.run(session).await,
        }
    }
}
