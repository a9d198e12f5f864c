//! What is wrong with a file that should be a backup.

use super::FORMAT;
use std::io;

/// What is wrong with a file that should be a backup. Places are bytes from the file's beginning.
#[derive(Debug, thiserror::Error)]
pub enum BackupFault {
    /// The file cannot be read.
    #[error("expected to read the backup at byte {offset}, but {error}")]
    Unreadable {
        /// Where.
        offset: u64,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("expected a backup, but the file does not begin like one")]
    Foreign,
    /// Its format is not known here.
    #[error("expected a backup of format {FORMAT}, but it is of format {0}")]
    FormatUnknown(u8),
    /// It ends too early.
    #[error("expected the backup to go on, but it is cut short after byte {0}")]
    CutShort(u64),
    /// A block is not what was written.
    #[error("expected the block at byte {offset} as it was written, but {reason}")]
    Damaged {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// It goes on behind its last block.
    #[error("expected the backup to end after byte {0}, but the file goes on")]
    Trailing(u64),
    /// It was written so, but its rows are not a state.
    #[error("expected the rows of a state, but {0}")]
    Inconsistent(String),
}

impl BackupFault {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the disk, or use another copy of the file",
            Self::Foreign => "name a file that `flo cluster backup` wrote",
            Self::FormatUnknown(_) => "use the version of flo that wrote it, or a newer one",
            Self::CutShort(_) => {
                "it was not copied to its end: copy it again, or use another backup"
            }
            Self::Damaged { .. } | Self::Trailing(_) => {
                "the file has changed since it was written: use another copy, or another backup"
            }
            Self::Inconsistent(_) => {
                "use the version of flo that wrote it, or a newer one, or another backup"
            }
        }
    }
}
