//! A disk whose writes hang while it is frozen.

use flotilla_tests::Scratch;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of the file that holds the disk, in bytes. It takes only the space that is written.
const BYTES: u64 = 4 << 30;

/// A file system in a file; dropping it unmounts it.
#[derive(Clone, Debug)]
pub(super) struct FreezingDisk {
    folder: PathBuf,
}

/// Unmounts the disk when it is dropped, and then deletes it.
#[derive(Debug)]
pub(super) struct Mounted {
    disk: FreezingDisk,
    _scratch: Scratch,
}

impl FreezingDisk {
    /// Makes and mounts a file system.
    ///
    /// # Panics
    /// When the machine does not allow it.
    pub(super) fn mount() -> Mounted {
        let scratch = Scratch::new();
        let (image, folder) = (scratch.path("image"), scratch.path("disk"));
        fs::create_dir_all(&folder).expect("a folder in the folder of the attack");
        let made = File::create(&image).and_then(|file| file.set_len(BYTES));
        made.expect("a file in the folder of the attack");
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&folder));
        Mounted {
            disk: Self { folder },
            _scratch: scratch,
        }
    }

    /// From now on, writes to it wait.
    ///
    /// # Panics
    /// When the machine does not allow it.
    pub(super) fn freeze(&self) {
        run(Command::new("fsfreeze").arg("--freeze").arg(&self.folder));
    }

    /// Lets the writes continue.
    pub(super) fn thaw(&self) {
        // It may not be frozen.
        let _ = Command::new("fsfreeze")
            .arg("--unfreeze")
            .arg(&self.folder)
            .output();
    }
}

impl Mounted {
    /// The disk.
    pub(super) fn disk(&self) -> &FreezingDisk {
        &self.disk
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.disk.folder
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.disk.thaw();
        // Lazily: a process that is just being killed may still hold files.
        let _ = Command::new("umount")
            .arg("-l")
            .arg(&self.disk.folder)
            .status();
    }
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "expected `{command:?}` to succeed, but it did not ({status:?}): a disk that hangs needs root, loop devices and ext4"
    );
}
