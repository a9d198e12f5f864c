//! The flags of every report.

use super::chart;
use crate::failure::Failure;
use crate::key_value;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is made of the figures beside what is printed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportFlags {
    /// Draw latencies and throughput
    #[arg(long, value_name = "FILE.svg")]
    pub(super) plot: Option<PathBuf>,

    /// Something that the report is to say of the measurement, for `flo bench plot`; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    labels: Vec<(String, String)>,
}

impl ReportFlags {
    /// Refuses a file that could not be drawn to, before anything is measured.
    ///
    /// # Errors
    /// As [`chart::check`].
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.plot.as_deref().map_or(Ok(()), chart::check)
    }

    /// The labels, the last of those with the same key.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}
