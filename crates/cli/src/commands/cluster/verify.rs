//! `flo cluster verify`.

use super::backup_file::{inspect, open};
use crate::failure::Failure;
use crate::session::Session;
use crate::views::BackupView;
use clap::Args;
use std::future::pending;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  flo cluster verify /backups/monday.flo
  flo cluster verify /backups/monday.flo -o json

Exit codes: 0 intact, 2 damaged, truncated or not a backup.";

/// Verify a backup and show what it contains
///
/// Works without a cluster. It reads the whole file and checks every checksum and every row.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// File written by `flo cluster backup`
    file: PathBuf,
}

impl Verify {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let file = open(&self.file)?;
        // Signals end the process as usual: it leaves nothing behind.
        let summary = inspect(file, self.file.clone(), async || pending().await).await?;
        let view = BackupView::new(&self.file, summary);
        session.output.value(&view, BackupView::text)
    }
}
