//! A backup: the whole state after one entry of the log, in one file (ADR 0017).
//!
//! ```text
//! "flotilla-backup\n" (16) | format (1) | block …
//! block: kind (1) | length of the body (4) | crc32 of the body (4) | body
//!
//! kind 1, the first:      the header, a `Header` in the encoding of records
//! kind 2, any number:     rows, an lz4 frame as between peers (`state/snapshot.rs`)
//! kind 3, the last:       the number of rows, their digest, and that of all bytes before this block
//! ```
//! Numbers are big-endian; nothing follows the last block. The crc32 locates damage; the digest
//! detects what a block's own frame hides. A file without its last block is not a backup.
//!
//! The file is written and read sequentially, so it can be a stream: this is how a running node
//! sends it.

mod check;
mod fault;
mod header;
mod offline;
mod reader;
mod restore;
mod serving;
mod writer;

pub use check::{BackupSummary, TableSummary, verify};
pub use fault::BackupFault;
pub use header::{BackupHeader, BackupOrigin};
pub use offline::{OfflineError, backup_directory};
pub use restore::{RestoreError, RestoredMember, restore};
pub use serving::{Backup, BackupError};
pub(crate) use serving::{BackupParts, Backups};

/// What every backup begins with.
const MAGIC: &[u8; 16] = b"flotilla-backup\n";
/// The only format so far.
const FORMAT: u8 = 1;
/// The maximum length of a block's body: a megabyte of rows or one larger row, compressed.
const BODY_BYTES_MAX: u32 = 128 << 20;

const KIND_HEADER: u8 = 1;
const KIND_ROWS: u8 = 2;
const KIND_END: u8 = 3;
