//! The state store of a real node.
//!
//! ```text
//! state/CURRENT       the name of the generation in use, replaced by one rename
//! state/0000000001/   a generation: a RocksDB directory
//! snapshots/NAME/     the last capture: a RocksDB checkpoint, hard links mostly
//! ```

use crate::state::fsync::{replace_file, sync_directory, sync_tree};
use crate::state::generation::{Generation, failed};
use crate::state::rows;
use crate::state::store::{Incoming, SharedReader, StateStore};
use crate::storage::StoreFigures;
use flotilla_engine::store::{Reader, StoreError, Writes};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

const CURRENT: &str = "CURRENT";

/// The state in directories below a node's data directory; clones share it.
#[derive(Clone)]
pub(crate) struct RocksState {
    inner: Arc<Inner>,
}

struct Inner {
    generations: PathBuf,
    snapshots: PathBuf,
    current: RwLock<Arc<Generation>>,
    captured: Mutex<Option<Arc<Generation>>>,
    /// The number of the next generation or snapshot directory.
    number_next: Mutex<u64>,
    /// See [`StateStore::limit_buffers`].
    buffers_percent: AtomicU32,
}

impl RocksState {
    /// The folders below the data directory: of the state, and of its snapshots.
    pub(crate) const PARTS: [&str; 2] = ["state", "snapshots"];

    /// Opens or creates the state below `data_directory` and removes what a crash left unfinished.
    ///
    /// # Errors
    /// [`StoreError`] if a directory cannot be read or written.
    pub(crate) fn open(data_directory: &Path) -> Result<Self, StoreError> {
        let [generations, snapshots] = Self::PARTS.map(|part| data_directory.join(part));
        fs::create_dir_all(&generations).map_err(failed)?;
        fs::create_dir_all(&snapshots).map_err(failed)?;
        let name = current_name(&generations)?;
        remove_others(&generations, &[CURRENT, &name])?;
        let current = Generation::open(&generations.join(&name)).map_err(failed)?;
        let captured = newest_capture(&snapshots)?;
        let numbers = [
            Some(current.directory()),
            captured.as_ref().map(|c| c.directory()),
        ];
        let number_last = numbers
            .into_iter()
            .flatten()
            .filter_map(number_of)
            .max()
            .unwrap_or(0);
        Ok(Self {
            inner: Arc::new(Inner {
                generations,
                snapshots,
                current: RwLock::new(Arc::new(current)),
                captured: Mutex::new(captured.map(Arc::new)),
                number_next: Mutex::new(number_last + 1),
                buffers_percent: AtomicU32::new(100),
            }),
        })
    }
}

impl RocksState {
    /// A copy of the current rows below another data directory; mostly hard links. Writes to one of
    /// the two do not affect the other.
    pub(crate) fn copy_to(&self, data_directory: &Path) -> Result<Self, StoreError> {
        let generations = data_directory.join(Self::PARTS[0]);
        fs::create_dir_all(&generations).map_err(failed)?;
        let directory = generations.join(directory_name(1));
        self.inner.current().checkpoint(&directory)?;
        Self::open(data_directory)
    }
}

impl Inner {
    fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn captured(&self) -> MutexGuard<'_, Option<Arc<Generation>>> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_name(&self) -> String {
        let mut next = self
            .number_next
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        directory_name(*next - 1)
    }

    fn capture(&self) -> Result<Arc<Generation>, StoreError> {
        let directory = self.snapshots.join(self.next_name());
        self.current().checkpoint(&directory)?;
        sync_tree(&directory)
            .and_then(|()| sync_directory(&self.snapshots))
            .map_err(failed)?;
        let capture = Arc::new(Generation::open_frozen(&directory).map_err(failed)?);
        self.keep_newer(capture)
    }

    /// Removes the last capture.
    fn forget_captured(&self) -> Result<(), StoreError> {
        let Some(older) = self.captured().take() else {
            return Ok(());
        };
        older.doom();
        drop(older);
        sync_directory(&self.snapshots).map_err(failed)
    }

    /// Keeps the newer of the last capture and this one: a capture that was running while a
    /// received state was installed comes last, but is older.
    fn keep_newer(&self, capture: Arc<Generation>) -> Result<Arc<Generation>, StoreError> {
        let index = rows::applied_position(capture.as_ref())
            .map_err(failed)?
            .index();
        let mut captured = self.captured();
        if let Some(last) = captured.as_ref()
            && rows::applied_position(last.as_ref())
                .map_err(failed)?
                .index()
                > index
        {
            capture.doom();
            return Ok(Arc::clone(last));
        }
        if let Some(older) = captured.replace(Arc::clone(&capture)) {
            older.doom();
        }
        Ok(capture)
    }
}

impl StateStore for RocksState {
    fn reader(&self) -> Arc<dyn SharedReader> {
        self.inner.current()
    }

    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader)) {
        self.inner.current().frozen(read);
    }

    fn write(&self, writes: &Writes) -> Result<(), StoreError> {
        self.inner.current().write(writes)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.inner.current().flush()
    }

    fn limit_buffers(&self, percent: u32) -> Result<(), StoreError> {
        self.inner.buffers_percent.store(percent, Ordering::Relaxed);
        self.inner.current().limit_buffers(percent)
    }

    fn capture(&self) -> Result<Arc<dyn SharedReader>, StoreError> {
        Ok(self.inner.capture()?)
    }

    fn captured(&self) -> Option<Arc<dyn SharedReader>> {
        let captured = self.inner.captured().clone()?;
        Some(captured)
    }

    fn receive(&self) -> Result<Box<dyn Incoming>, StoreError> {
        let directory = self.inner.generations.join(self.inner.next_name());
        let generation = Generation::open(&directory).map_err(failed)?;
        generation.limit_buffers(self.inner.buffers_percent.load(Ordering::Relaxed))?;
        generation.doom();
        Ok(Box::new(ReceivedGeneration {
            generation,
            inner: Arc::clone(&self.inner),
        }))
    }

    fn figures(&self) -> Option<StoreFigures> {
        Some(self.inner.current().figures())
    }
}

/// A generation that is being received; deleted unless it is installed.
struct ReceivedGeneration {
    generation: Generation,
    inner: Arc<Inner>,
}

impl Incoming for ReceivedGeneration {
    fn write(&mut self, writes: &Writes) -> Result<(), StoreError> {
        self.generation.write(writes)
    }

    fn reader(&self) -> &dyn Reader {
        &self.generation
    }

    fn install(self: Box<Self>) -> Result<(), StoreError> {
        let Self { generation, inner } = *self;
        generation.flush()?;
        sync_tree(generation.directory()).map_err(failed)?;
        inner.forget_captured()?;
        let name = generation
            .directory()
            .file_name()
            .and_then(|name| name.to_str());
        let name = name.expect("the directory has a name that was made of digits");
        replace_file(&inner.generations, CURRENT, name.as_bytes()).map_err(failed)?;
        generation.spare();
        let mut current = inner
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, Arc::new(generation)).doom();
        Ok(())
    }
}

/// The name of the generation in use; for a new directory, the first one's.
fn current_name(generations: &Path) -> Result<String, StoreError> {
    let file = generations.join(CURRENT);
    if !file.try_exists().map_err(failed)? {
        replace_file(generations, CURRENT, directory_name(1).as_bytes()).map_err(failed)?;
    }
    Ok(fs::read_to_string(file).map_err(failed)?.trim().to_owned())
}

/// The capture with the greatest index; removes others and those that cannot be opened.
fn newest_capture(snapshots: &Path) -> Result<Option<Generation>, StoreError> {
    let mut newest: Option<(Option<u64>, Generation)> = None;
    for entry in fs::read_dir(snapshots).map_err(failed)? {
        let directory = entry.map_err(failed)?.path();
        let opened = Generation::open_frozen(&directory)
            .ok()
            .and_then(|capture| Some((rows::applied_position(&capture).ok()?.index(), capture)));
        match opened {
            Some(found) if newest.as_ref().is_none_or(|(index, _)| found.0 >= *index) => {
                if let Some((_, older)) = newest.replace(found) {
                    older.doom();
                }
            }
            Some((_, older)) => older.doom(),
            None => fs::remove_dir_all(&directory).map_err(failed)?,
        }
    }
    Ok(newest.map(|(_, capture)| capture))
}

fn remove_others(directory: &Path, kept: &[&str]) -> Result<(), StoreError> {
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_kept = entry
            .file_name()
            .to_str()
            .is_some_and(|name| kept.contains(&name));
        if is_kept {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(failed)?;
    }
    Ok(())
}

fn directory_name(number: u64) -> String {
    format!("{number:010}")
}

fn number_of(directory: &Path) -> Option<u64> {
    directory.file_name()?.to_str()?.parse().ok()
}
