//! The files in which a program says more about its result than its exit code and its output do.

use std::io;
use std::path::Path;
use tempfile::NamedTempFile;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// The read limit of the files that hold a word: the name of an outcome has at most 64 bytes (W11).
const WORD_BYTES_MAX: u64 = 1024;

/// The read limit of the patch: one byte more than a state may have (W66).
const PATCH_BYTES_MAX: u64 = (256 << 10) + 1;

/// The read limit of the usage: more than 16 names with their numbers take (W87).
const USAGE_BYTES_MAX: u64 = 16 << 10;

/// The files of an attempt. They are empty when the program starts, and are deleted after it.
pub(super) struct ResultFiles {
    /// The outcome.
    pub(super) outcome: NamedTempFile,
    /// The patch of the state.
    pub(super) state_patch: NamedTempFile,
    /// The delay of what follows.
    pub(super) delay: NamedTempFile,
    /// What it has used.
    pub(super) usage: NamedTempFile,
}

/// What the files hold.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) outcome: Vec<u8>,
    pub(super) state_patch: Vec<u8>,
    pub(super) delay: Vec<u8>,
    pub(super) usage: Vec<u8>,
}

impl ResultFiles {
    pub(super) fn create() -> io::Result<Self> {
        Ok(Self {
            outcome: NamedTempFile::with_prefix("flo-outcome-")?,
            state_patch: NamedTempFile::with_prefix("flo-state-patch-")?,
            delay: NamedTempFile::with_prefix("flo-delay-")?,
            usage: NamedTempFile::with_prefix("flo-usage-")?,
        })
    }

    pub(super) async fn read(&self) -> io::Result<Written> {
        Ok(Written {
            outcome: read(self.outcome.path(), WORD_BYTES_MAX).await?,
            state_patch: read(self.state_patch.path(), PATCH_BYTES_MAX).await?,
            delay: read(self.delay.path(), WORD_BYTES_MAX).await?,
            usage: read(self.usage.path(), USAGE_BYTES_MAX).await?,
        })
    }
}

/// The content of a file, which the program may have replaced by another one, or deleted.
async fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path).await {
        Ok(file) => {
            file.take(bytes_max).read_to_end(&mut bytes).await?;
            Ok(bytes)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
        Err(error) => Err(error),
    }
}
