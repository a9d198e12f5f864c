//! The disk of a machine: in memory, but as forgetful as a real disk.
//!
//! Readers see a write immediately, but a power cut loses it unless it is synced. A power cut
//! leaves the synced writes and a prefix of the later ones, as the storage traits of the replica require.

mod log;
mod pace;
mod state;
mod storage;
mod volatile;

pub(crate) use pace::DiskPace;
pub(crate) use storage::Disk;
