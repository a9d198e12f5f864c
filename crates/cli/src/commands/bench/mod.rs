//! `flo bench`: loads for a cluster, one file each, and what they measure.
//!
//! A workload is a [`Work`](load::Work): something that is done over and over. [`load`] does it at the
//! pace that was asked for and notes how long it took, [`usage`] asks the nodes what it cost them,
//! [`report`] makes figures of that and [`chart`] draws them. The tool shares its machine with the
//! cluster more often than not, so it is to cost little: connections are shared, and nothing is
//! polled for.

mod chart;

mod load;
mod measurement;
mod parked;
mod payload;
mod plot;
mod read;
mod report;
mod report_flags;
mod runs;
mod setup;
mod signal;
mod start;
mod steps;
mod stream;
mod timers;
mod usage;
mod wasm;
mod workers;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Measure a cluster
///
/// What a bench creates is called `flo-bench-…`, in the namespace that --namespace names; its help says what stays.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Start(start::Start),
    Steps(steps::Steps),
    Signal(signal::Signal),
    Timers(timers::Timers),
    Stream(stream::Stream),
    Parked(parked::Parked),
    Wasm(wasm::Wasm),
    Read(read::Read),
    Plot(plot::Plot),
}

impl BenchCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Start(start) => start.run(session).await,
            Self::Steps(steps) => steps.run(session).await,
            Self::Signal(signal) => signal.run(session).await,
            Self::Timers(timers) => timers.run(session).await,
            Self::Stream(stream) => stream.run(session).await,
            Self::Parked(parked) => parked.run(session).await,
            Self::Wasm(wasm) => wasm.run(session).await,
            Self::Read(read) => read.run(session).await,
            Self::Plot(plot) => plot.run(session),
        }
    }
}
