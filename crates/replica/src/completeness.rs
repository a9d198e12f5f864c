//! Detects that a file is missing which says what other files are.
//!
//! Without it, data looks like the leftovers of a crash, and opening a store deletes leftovers.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why it is unknown which files of a folder are in use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IncompleteError {
    #[error("expected {}, but it is missing, while there is data beside it", .0.display())]
    Missing(PathBuf),
    #[error("expected the name of a generation in {}, but found {found:?}", file.display())]
    NotAName { file: PathBuf, found: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Refuses the files of a RocksDB database that has lost its file `CURRENT`: RocksDB would create a new database beside
/// them, and delete them. RocksDB creates them after that file.
///
/// # Errors
/// [`IncompleteError`]
pub(crate) fn check_database(directory: &Path) -> Result<(), IncompleteError> {
    let current = directory.join("CURRENT");
    if !current.try_exists()? && has_data(directory)? {
        return Err(IncompleteError::Missing(current));
    }
    Ok(())
}

/// Whether there are tables or write-ahead logs.
fn has_data(directory: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let name = PathBuf::from(entry?.file_name());
        if name
            .extension()
            .is_some_and(|ending| ending == "sst" || ending == "log")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use crate::log::device::{Durability, Fact, Operation};
    use crate::rocks_storage::RocksStorage;
    use crate::state::fsync::tests::is_durable;
    use crate::storage::{Storage, StorageError};
    use std::fs;

    #[test]
    fn a_log_that_has_lost_the_file_that_describes_it_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let fact = Operation::Set {
            fact: Fact::Vote,
            bytes: vec![7],
        };
        let log = RocksStorage.open_log(directory.path()).unwrap();
        log.write(&[fact], Durability::Synced).unwrap();
        drop(log);
        assert!(is_durable(&directory.path().join("log")));
        let current = directory.path().join("log/CURRENT");
        let bytes = fs::read(&current).unwrap();
        fs::remove_file(&current).unwrap();
        let refused = RocksStorage.open_log(directory.path()).err();
        let Some(StorageError::Incomplete(says)) = refused else {
            panic!("{refused:?}");
        };
        assert!(says.contains("log/CURRENT, but it is missing"), "{says}");
        fs::write(&current, bytes).unwrap();
        let log = RocksStorage.open_log(directory.path()).unwrap();
        assert_eq!(log.facts().unwrap()[&Fact::Vote], [7]);
    }
}
