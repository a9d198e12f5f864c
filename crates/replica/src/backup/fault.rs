//! What is wrong with a backup file.

use super::FORMAT;
use std::io;

/// What is wrong with a backup file. Positions are bytes from the file's beginning.
#[derive(Debug, thiserror::Error)]
pub enum BackupFault {
    /// The file cannot be read.
    #[error("expected to read the backup at byte {offset}, but {error}")]
    Unreadable {
        /// The position of the read, in bytes.
        offset: u64,
        /// The I/O error.
        error: io::Error,
    },
    /// It is not a backup file.
    #[error("expected a backup, but the file does not begin like one")]
    Foreign,
    /// Its format is unknown to this version.
    #[error("expected backup format {FORMAT}, but the file has format {0}")]
    FormatUnknown(u8),
    /// It is of a Raft group that this version does not have.
    #[error("expected a backup of Raft group 0, but the file is of group {0}")]
    GroupUnknown(u64),
    /// It is truncated.
    #[error("expected more of the backup, but it is cut short after byte {0}")]
    CutShort(u64),
    /// A block was changed after it was written.
    #[error("expected the block at byte {offset} as it was written, but {reason}")]
    Damaged {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// It has bytes after its last block.
    #[error("expected the backup to end after byte {0}, but the file continues")]
    Trailing(u64),
    /// It is undamaged, but its rows are not a state.
    #[error("expected the rows of a state, but {0}")]
    Inconsistent(String),
}

impl BackupFault {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the disk, or use another copy of the file",
            Self::Foreign => "give a file that `flo cluster backup` wrote",
            Self::FormatUnknown(_) | Self::GroupUnknown(_) => {
                "use the version of flo that wrote it, or a newer one"
            }
            Self::CutShort(_) => "its copy is incomplete: copy it again, or use another backup",
            Self::Damaged { .. } | Self::Trailing(_) => {
                "the file has changed since it was written: use another copy, or another backup"
            }
            Self::Inconsistent(_) => {
                "use the version of flo that wrote it, or a newer one, or another backup"
            }
        }
    }
}
