//! What the micro-benchmarks measure: known work, recorded once as a log, checked, and replayed.
//!
//! A [`Workload`] is played through an engine over memory, and the entries that carried it are kept as a
//! [`Recording`]. A bench replays them over a fresh copy of the rows that they begin with. So each round does the
//! same, memory stays bounded, and making commands or looking at replies is never part of a figure.

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

/// Whether figures are wanted: `cargo bench` says so. Otherwise each measurement runs once, to show that it does.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A group of measurements that take a tenth of a second or more each.
///
/// A round replays a whole recording, so a sample is a few rounds, and ten of them settle a figure.
pub fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_secs(2))
        .measurement_time(Duration::from_secs(4));
    group
}
