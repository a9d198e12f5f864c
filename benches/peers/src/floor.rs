//! The floor: how long the disk takes to make an append durable.

use crate::fault::Fault;
use crate::report::{Measured, Report, Verified};
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is appended before each fdatasync, in bytes.
const APPEND_BYTES: usize = 4096;
/// The file in the folder; it is removed at the end.
const FILE: &str = "floor";

/// Measure fdatasync of 4 KiB appends
#[derive(Debug, Args)]
pub(crate) struct Floor {
    /// The folder whose disk is measured
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,

    /// How long to measure
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
}

impl Floor {
    /// Measures and prints.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub(crate) fn run(self) -> Result<(), Fault> {
        let measured = measure(&self.folder, Duration::from_secs(self.seconds.into()))?;
        let verified = Verified {
            count: measured.succeeded,
            by: "the length of the file",
        };
        Report::new("fdatasync", 1, &measured, verified).print()
    }
}

fn measure(folder: &Path, length: Duration) -> Result<Measured, Fault> {
    let path = folder.join(FILE);
    let mut file = File::create(&path)?;
    let block = [b'f'; APPEND_BYTES];
    let mut measured = Measured::nothing();
    let started = Instant::now();
    while started.elapsed() < length {
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        measured.record(began.elapsed());
        measured.succeeded += 1;
    }
    measured.elapsed = started.elapsed();
    let bytes = file.metadata()?.len();
    std::fs::remove_file(&path)?;
    let block_bytes = u64::try_from(APPEND_BYTES).expect("4096 fits");
    if bytes != measured.succeeded * block_bytes {
        let appends = measured.succeeded;
        return Err(Fault::new(format!(
            "expected a file of {appends} appends, but it has {bytes} bytes"
        )));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_are_measured_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let measured = measure(folder.path(), Duration::from_millis(20)).unwrap();
        assert!(measured.succeeded > 0);
        assert_eq!(measured.latencies.len(), measured.succeeded);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_refused() {
        assert!(measure(Path::new("/no-such-folder"), Duration::ZERO).is_err());
    }
}
