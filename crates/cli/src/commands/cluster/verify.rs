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

Exit codes: 0 whole, 2 damaged, cut short, or no backup.";

/// Check a backup and show what is in it
///
/// Needs no cluster. It reads all of the file: every checksum, and every row.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// The file that `flo cluster backup` wrote
    file: PathBuf,
}

impl Verify {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let file = open(&self.file)?;
        // Signals end it as they end any process: it leaves nothing behind.
        let summary = inspect(file, self.file.clone(), async || pending().await).await?;
        let view = BackupView::new(&self.file, summary);
        session.output.value(&view, BackupView::text)
    }
}
