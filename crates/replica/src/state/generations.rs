//! The folders of generations and captures: which generation is in use, and what is a leftover.
//!
//! Nothing is deleted that may be the only copy: the node refuses to start if it does not know which generation is in use,
//! deletes others only once that one is open, and leaves alone what it has not created.

use crate::completeness::IncompleteError;
use crate::state::fsync::replace_file;
use crate::state::generation::{Generation, failed};
use crate::state::rows::{self, RowError};
use flotilla_engine::store::StoreError;
use rocksdb::{Cache, ErrorKind};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that names the generation in use.
const CURRENT: &str = "CURRENT";
/// The number of a new directory's generation.
const FIRST: u64 = 1;
/// The number of digits in a name.
const DIGITS: usize = 10;
/// The ending of a checkpoint that RocksDB has not finished.
const UNFINISHED: &str = "tmp";

/// The name of the directory with this number.
pub(super) fn name_of(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

fn number_of(name: &str) -> Option<u64> {
    let is_name = name.len() >= DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| is_name)
}

/// The directories of a folder that have a number as their name, by number.
fn numbered(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(number_of) {
            found.push((number, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The greatest number of a directory in a folder; 0 if there is none.
pub(super) fn number_last(folder: &Path) -> Result<u64, StoreError> {
    let numbered = numbered(folder).map_err(failed)?;
    Ok(numbered.last().map_or(0, |(number, _)| *number))
}

/// The generation in use; `None` in a new folder.
///
/// # Errors
/// [`StoreError`] with [`IncompleteError`] if it is unknown.
pub(super) fn current(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    let found = numbered(folder).map_err(failed)?;
    let file = folder.join(CURRENT);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && found.is_empty() => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(failed(IncompleteError::Missing(file)));
        }
        text => text.map_err(failed)?,
    };
    let name = text.trim();
    let Some(named) = number_of(name) else {
        let found = name.to_owned();
        return Err(failed(IncompleteError::NotAName { file, found }));
    };
    let directory = folder.join(name);
    let is_there = found.iter().any(|(number, _)| *number == named);
    // The first start writes the name before it creates the directory.
    let is_cut_short = named == FIRST && found.is_empty();
    if !is_there && !is_cut_short {
        return Err(failed(IncompleteError::Missing(directory)));
    }
    Ok(Some(directory))
}

/// The generation in use; a new folder gets the first one's name.
pub(super) fn establish_current(folder: &Path) -> Result<PathBuf, StoreError> {
    if let Some(directory) = current(folder)? {
        return Ok(directory);
    }
    let name = name_of(FIRST);
    set_current(folder, &name)?;
    Ok(folder.join(name))
}

/// Makes this generation the one in use, by one rename.
pub(super) fn set_current(folder: &Path, name: &str) -> Result<(), StoreError> {
    replace_file(folder, CURRENT, name.as_bytes()).map_err(failed)
}

/// Deletes all generations but the one in use.
pub(super) fn remove_others(folder: &Path, in_use: &Generation) -> Result<(), StoreError> {
    for (_, directory) in numbered(folder).map_err(failed)? {
        if directory != in_use.directory() {
            fs::remove_dir_all(&directory).map_err(failed)?;
        }
    }
    Ok(())
}

/// The capture with the greatest index; removes others, and those that are unfinished or damaged. One that cannot be
/// opened for another reason is kept: that reason may pass.
pub(super) fn newest_capture(
    folder: &Path,
    cache: &Cache,
) -> Result<Option<Generation>, StoreError> {
    remove_unfinished(folder).map_err(failed)?;
    let mut newest: Option<(Option<u64>, Generation)> = None;
    for (_, directory) in numbered(folder).map_err(failed)? {
        match open_capture(&directory, cache) {
            Ok(found) if newest.as_ref().is_none_or(|(index, _)| found.0 >= *index) => {
                if let Some((_, older)) = newest.replace(found) {
                    older.doom();
                }
            }
            Ok((_, older)) => older.doom(),
            Err(error) if is_damage(&error) => {
                tracing::warn!(directory = %directory.display(), %error, "a damaged snapshot is \
                                                                          deleted");
                fs::remove_dir_all(&directory).map_err(failed)?;
            }
            Err(error) => {
                tracing::warn!(directory = %directory.display(), %error, "a snapshot cannot be \
                                                                          opened: it is kept for \
                                                                          the next start");
            }
        }
    }
    Ok(newest.map(|(_, capture)| capture))
}

fn open_capture(directory: &Path, cache: &Cache) -> Result<(Option<u64>, Generation), RowError> {
    let capture = Generation::open_frozen(directory, cache)?;
    Ok((rows::applied_position(&capture)?.index(), capture))
}

fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let directory = entry?.path();
        let stem = directory.file_stem().and_then(|stem| stem.to_str());
        let is_unfinished = directory
            .extension()
            .is_some_and(|ending| ending == UNFINISHED);
        if is_unfinished && stem.and_then(number_of).is_some() {
            fs::remove_dir_all(&directory)?;
        }
    }
    Ok(())
}

/// Whether files are missing or damaged, rather than unreadable at this moment, such as without permission or with too many
/// open files. RocksDB has no separate error kind for a missing file, and reports some errors of the file system within
/// a corruption.
fn is_damage(error: &RowError) -> bool {
    let RowError::Store(StoreError(error)) = error else {
        return true;
    };
    let Some(error) = error.downcast_ref::<rocksdb::Error>() else {
        return false;
    };
    let text = error.to_string();
    let is_absence = text.contains("No such file or directory");
    match error.kind() {
        ErrorKind::NotFound => true,
        ErrorKind::Corruption => is_absence || !text.contains("IO error"),
        ErrorKind::IOError => is_absence,
        _ => false,
    }
}
