//! The flags of every report.

use super::chart;
use crate::code::Code;
use crate::failure::Failure;
use crate::key_value;
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Refuses labels that contradict each other and a file that could not be drawn to, before anything is measured.
    ///
    /// # Errors
    /// `usage` for a label that is given twice; as [`chart::check`].
    pub(super) fn check(&self) -> Result<(), Failure> {
        let mut keys = BTreeSet::new();
        if let Some((key, _)) = self.labels.iter().find(|(key, _)| !keys.insert(key)) {
            let message = format!("expected each label once, but --label {key}=… is given twice");
            return Err(Failure::new(Code::Usage, message));
        }
        self.plot.as_deref().map_or(Ok(()), chart::check)
    }

    /// The labels.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}
