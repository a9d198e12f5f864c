//! A disk that can be filled.

use nix::sys::statvfs::statvfs;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Space for a node that runs for a while.
const SIZE: &str = "size=256m";
const BLOCK_BYTES: usize = 1 << 20;

/// A small file system in memory; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system.
    ///
    /// # Panics
    /// When the machine does not allow it.
    pub(crate) fn mount(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder in the run's own folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "flo-jepsen"])
            .arg(folder)
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "expected to mount a tmpfs, but it failed: a full disk needs root"
        );
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves no free space on it.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("an empty file takes no room");
        // It fails when no space is left, as intended.
        while filler.write_all(&[0; BLOCK_BYTES]).is_ok() {}
    }

    /// Leaves at most this many bytes free on it.
    pub(crate) fn fill_but(&self, free_bytes: u64) {
        let mut filler = File::create(self.filler()).expect("an empty file takes no room");
        while self.free_bytes() > free_bytes && filler.write_all(&[0; BLOCK_BYTES]).is_ok() {}
    }

    fn free_bytes(&self) -> u64 {
        let found = statvfs(&self.folder).expect("a file system that is mounted");
        found.blocks_available() * found.fragment_size()
    }

    /// Frees the space again.
    pub(crate) fn empty(&self) {
        // It may not have been filled.
        let _ = fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just being killed may still hold files.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}
