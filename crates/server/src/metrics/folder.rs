//! The disk usage of a folder.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The unit of the system's block count, whatever the file system's own block size.
const BLOCK_BYTES: u64 = 512;

/// The disk usage of the files in a folder and below. A file with several names counts once:
/// snapshots share files with the state. Files that disappear meanwhile do not count.
///
/// # Errors
/// If a folder or a file cannot be read.
pub(super) fn bytes(folder: &Path) -> io::Result<u64> {
    let (mut blocks, mut seen) = (0, BTreeSet::new());
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Some(entries) = still_there(fs::read_dir(folder))? else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let Some(metadata) = still_there(entry.metadata())? else {
                continue;
            };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if seen.insert((metadata.dev(), metadata.ino())) {
                blocks += metadata.blocks();
            }
        }
    }
    Ok(blocks * BLOCK_BYTES)
}

fn still_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        assert_eq!(bytes(folder.path()).unwrap(), 0);
        let file = folder.path().join("file");
        fs::write(&file, vec![7; 100_000]).unwrap();
        let once = bytes(folder.path()).unwrap();
        assert!((100_000..1 << 20).contains(&once), "{once}");
        fs::hard_link(&file, below.join("again")).unwrap();
        assert_eq!(bytes(folder.path()).unwrap(), once);
    }

    #[test]
    fn a_folder_that_is_gone_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(bytes(&folder.path().join("gone")).unwrap(), 0);
    }
}
