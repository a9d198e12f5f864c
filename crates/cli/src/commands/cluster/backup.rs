//! `flo cluster backup`.

use super::backup_file::NewFile;
use super::blocking::{Stop, run_blocking, stopped};
use crate::code::Code;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use crate::shutdown::Shutdown;
use crate::views::{BackupView, bytes};
use clap::Args;
use flotilla_client::v1::BackupRequest;
use flotilla_server::backup::{OfflineError, backup_directory};
use futures::TryStreamExt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  flo cluster backup /backups/monday.flo
  flo cluster backup latest.flo --force --endpoint 10.0.0.2:9000
  flo cluster backup rescued.flo --data-dir /var/lib/flo

Exit codes: 2 no data directory, 3 FILE exists or a node uses the data directory, 4 try again.";

/// Save the whole state to a file while the cluster serves
///
/// The backup contains everything acknowledged before the call. Any node can make it, and keeps
/// serving. FILE appears only once it is complete: written, read back and verified. With
/// --data-dir, the backup is made from the directory of a stopped node, without a cluster: see
/// docs/operations/lost-quorum.md.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    /// File to write; only its owner may read it
    file: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Back up the data directory of a stopped node
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Backup {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mut shutdown = Shutdown::new()?;
        // A half-written file is deleted with its owner.
        let file = NewFile::create(self.file.clone(), self.force)?;
        let file = match self.data_dir {
            Some(directory) => save_directory(file, directory, &mut shutdown).await?,
            None => tokio::select! {
                downloaded = download(file, session) => downloaded?,
                () = shutdown.requested() => return Err(stopped()),
            },
        };
        let verified = file.verified(async || shutdown.requested().await);
        let (file, summary) = verified.await?;
        file.keep()?;
        let view = BackupView::new(&self.file, summary);
        session.output.value(&view, BackupView::line)
    }
}

async fn download(mut file: NewFile, session: &Session) -> Result<NewFile, Failure> {
    let progress = Progress::start("waiting for a snapshot".to_owned());
    let mut parts = session.client()?.backup(BackupRequest {}).await?;
    let mut written = 0;
    while let Some(part) = parts.try_next().await? {
        file.write(&part.data)?;
        written += part.data.len() as u64;
        let of = match part.expected_row_count {
            0 => String::new(),
            expected => format!(" of about {}", expected.max(part.row_count)),
        };
        progress.say(format!("{} rows{of}, {}", part.row_count, bytes(written)));
    }
    Ok(file)
}

/// A stop takes effect only once the log is applied. To stop sooner, request it twice: that leaves
/// a copy in the directory, which the next backup of it deletes.
async fn save_directory(
    file: NewFile,
    directory: PathBuf,
    shutdown: &mut Shutdown,
) -> Result<NewFile, Failure> {
    let mut writer = file.writer()?;
    let doing = format!("applying the log of {}", directory.display());
    let progress = Arc::new(Progress::start(doing));
    let told = progress.clone();
    let saving = move |stop: &Stop| {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut written = 0;
        let saved = backup_directory(&directory, version, &mut |piece| {
            stop.check()?;
            writer.write_all(&piece)?;
            written += piece.len() as u64;
            told.say(bytes(written));
            Ok(())
        });
        saved.map_err(|error| refuse(&error))
    };
    let stop_requested = async || {
        shutdown.requested().await;
        progress
            .say("stopping once the log is applied; stop again to abort immediately".to_owned());
    };
    let _header = run_blocking(saving, stop_requested).await??;
    Ok(file)
}

fn refuse(error: &OfflineError) -> Failure {
    let code = match error {
        OfflineError::NotADataDirectory(_) | OfflineError::NoCluster(_) => Code::DataDirInvalid,
        OfflineError::InUse(_) => Code::DataDirInUse,
        OfflineError::Diverged(_) => Code::DataDirDiverged,
        OfflineError::Unreadable { .. } => Code::DataDirUnreadable,
        OfflineError::Unwritable(_) => Code::FileUnwritable,
    };
    Failure::new(code, error.to_string()).with_hint(error.hint())
}
