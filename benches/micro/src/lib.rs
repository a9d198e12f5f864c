//! The input of the micro-benchmarks: known work, recorded once as a log, checked, and replayed.
//!
//! A [`Workload`] runs through an engine in memory, and its entries are kept as a
//! [`Recording`]. A bench replays them over a new copy of the initial rows. So each round does the
//! same work, memory stays bounded, and the figures exclude the cost of making commands and reading replies.

mod recorder;
mod recording;
mod requests;
mod steps;
mod waits;
mod workload;

pub use recording::{Recording, Rows, Timed};
pub use workload::{ENTRY_COMMANDS, Workload};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode};
use std::time::Duration;

/// Whether to measure, as under `cargo bench`. Otherwise each benchmark runs once, to show that it works.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A group of measurements that take a tenth of a second or more each.
///
/// A round replays a whole recording, so a sample is a few rounds, and ten samples give a stable figure.
pub fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_secs(2))
        .measurement_time(Duration::from_secs(4));
    group
}
