//! The lower bound for all systems: how long the disk takes to make an append durable.

use std::process::Command;

use anyhow::Result;

use super::bench::Bench;
use super::results::{Results, Series};

/// How long it is measured, in seconds: an append takes less than a millisecond.
const SECONDS: &str = "3";

/// The series of the disk.
pub(super) const SERIES: Series = Series {
    workload: "fdatasync of 4 KiB",
    system: "disk",
    clients: 1,
};

/// Measures the disk that holds the data of all systems.
///
/// # Errors
/// If the disk cannot be written to.
pub(super) fn measure(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    let mut command = Command::new(&bench.peers);
    command
        .arg("floor")
        .arg("--folder")
        .arg(bench.sandbox.folder())
        .args(["--seconds", SECONDS]);
    results.add(SERIES, bench.load("floor", &mut command)?);
    Ok(())
}
