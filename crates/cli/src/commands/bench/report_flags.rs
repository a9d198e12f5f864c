//! The flags that all reports share.

use super::chart;
use crate::code::Code;
use crate::failure::Failure;
use crate::key_value;
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is done with the report besides printing it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportFlags {
    /// Draw latencies and throughput to this SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(super) plot: Option<PathBuf>,

    /// Label to add to the report, for `flo bench plot`; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value::parse)]
    labels: Vec<(String, String)>,
}

impl ReportFlags {
    /// Refuses contradicting labels, and a figure file that cannot be written, before the
    /// measurement begins.
    ///
    /// # Errors
    /// `usage` for a label that is given twice; otherwise as [`chart::check`].
    pub(super) fn check(&self) -> Result<(), Failure> {
        let mut keys = BTreeSet::new();
        if let Some((key, _)) = self.labels.iter().find(|(key, _)| !keys.insert(key)) {
            let message = format!("expected each label once, but --label {key}=… is given twice");
            return Err(Failure::new(Code::Usage, message));
        }
        self.plot.as_deref().map_or(Ok(()), chart::check)
    }

    /// The labels by name.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}
