//! Whether a file system takes writes that bypass the page cache (ADR 0032).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Written and deleted by the check.
const CHECKED: &str = "direct-io-check";

/// A block with the alignment that direct I/O needs.
#[repr(align(4096))]
struct Block([u8; 4096]);

/// Whether a file in a directory, or in the nearest existing one above it, can be written with direct I/O. Some file
/// systems in memory refuse it. The log says why, if not.
pub(crate) fn is_supported(directory: &Path) -> bool {
    match check(directory) {
        Ok(()) => true,
        Err(error) => {
            tracing::info!(
                directory = %directory.display(),
                %error,
                "direct I/O is not possible: files are written through the page cache"
            );
            false
        }
    }
}

fn check(directory: &Path) -> io::Result<()> {
    let existing = directory.ancestors().find(|directory| directory.is_dir());
    let file = existing.unwrap_or(directory).join(CHECKED);
    let written = open(&file).and_then(|mut file| file.write_all(&Block([0; 4096]).0));
    // A file that stays is overwritten by the next check.
    drop(fs::remove_file(&file));
    written
}

#[cfg(target_os = "linux")]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(nix::libc::O_DIRECT)
        .open(file)
}

#[cfg(not(target_os = "linux"))]
fn open(_file: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_leaves_no_file_and_needs_no_directory() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("a/b");
        assert_eq!(is_supported(directory.path()), is_supported(&missing));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        // The kernel lets no process create files there.
        assert!(!is_supported(Path::new("/proc/self")));
    }
}
