//! `flo bench`: one file per workload, plus the load generator and the report.
//!
//! A workload is a [`Work`](load::Work): an operation that is repeated. [`load`] runs it at the
//! requested pace and measures latencies, [`usage`] asks the nodes what the load cost them,
//! [`report`] computes the figures and [`chart`] draws them. The bench often shares its machine
//! with the cluster, so it must be cheap: connections are shared and nothing is polled.

mod chart;
mod concurrent;
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

/// Measure the throughput and latency of a cluster
///
/// A bench prefixes the names of what it creates with `flo-bench-` and works in the namespace of
/// --namespace; the help of each command says what it leaves behind.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Start(start::Start),
    Steps(steps::Steps),
    Parallel(concurrent::Parallel),
    Foreach(concurrent::Foreach),
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
            Self::Parallel(parallel) => parallel.run(session).await,
            Self::Foreach(foreach) => foreach.run(session).await,
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
