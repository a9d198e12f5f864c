//! The argument that selects a revision of a version.

use clap::Args;

/// Selects a revision of `--version`, which the command must have.
#[derive(Debug, Args)]
pub(super) struct RevisionArgument {
    /// Revision number within --version [default: the newest revision]
    #[arg(long, value_name = "NUMBER", requires = "version")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    revision: Option<u32>,
}

impl RevisionArgument {
    /// The revision; 0 for the newest one, as in requests.
    pub(super) fn number(&self) -> u32 {
        self.revision.unwrap_or_default()
    }
}
