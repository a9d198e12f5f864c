//! Makes files and directory entries durable.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(test)]
    tests::note_synced(directory)?;
    File::open(directory)?.sync_all()
}

/// Creates a directory unless it exists; afterwards its name is durable.
pub(crate) fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    directory.parent().map_or(Ok(()), sync_directory)
}

/// Makes every file of a flat directory, and their names, durable.
pub(crate) fn sync_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_directory(directory)
}

/// Replaces the file's content by one rename; afterwards both content and name are durable.
pub(crate) fn replace_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    sync_directory(directory)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    thread_local! {
        static SYNCED: RefCell<BTreeSet<PathBuf>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Notes what is in a directory that is made durable.
    pub(super) fn note_synced(directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            SYNCED.with_borrow_mut(|synced| synced.insert(path));
        }
        Ok(())
    }

    /// Whether the name was in its directory when this thread last made that durable.
    pub(crate) fn is_durable(path: &Path) -> bool {
        SYNCED.with_borrow(|synced| synced.contains(path))
    }
}
