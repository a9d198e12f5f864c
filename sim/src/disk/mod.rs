//! What a machine keeps: in memory, but as forgetful as a disk.
//!
//! A write is there for readers at once, and safe from a power cut only after a sync. What a power cut
//! leaves is what was synced and a prefix of the writes since, as the seams of the replica promise.

mod log;
mod pace;
mod state;
mod storage;
mod volatile;

pub(crate) use pace::DiskPace;
pub(crate) use storage::Disk;
