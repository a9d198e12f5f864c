//! The state store of a real node.
//!
//! ```text
//! state/CURRENT       the name of the generation in use, replaced by one rename
//! state/0000000001/   a generation: a RocksDB directory
//! snapshots/NAME/     the last capture: a RocksDB checkpoint, hard links mostly
//! ```

use crate::state::fsync::{create_directory, sync_directory, sync_tree};
use crate::state::generation::{Generation, failed, new_cache, new_capture_cache};
use crate::state::generations::{self, number_last};
use crate::state::rows;
use crate::state::store::{Incoming, SharedReader, StateStore};
use crate::storage::StoreFigures;
use flotilla_engine::store::{Reader, StoreError, Writes};
use rocksdb::Cache;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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
    cache: Cache,
    capture_cache: Cache,
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
    /// [`StoreError`] if a directory cannot be read or written, or if it is unknown which generation is in use.
    pub(crate) fn open(data_directory: &Path) -> Result<Self, StoreError> {
        let [generations, snapshots] = Self::PARTS.map(|part| data_directory.join(part));
        create_directory(&generations).map_err(failed)?;
        create_directory(&snapshots).map_err(failed)?;
        let in_use = generations::establish_current(&generations)?;
        let (cache, capture_cache) = (new_cache(), new_capture_cache());
        let current = Generation::open(&in_use, &cache)?;
        sync_directory(&generations).map_err(failed)?;
        generations::remove_others(&generations, &current)?;
        let captured = generations::newest_capture(&snapshots, &capture_cache)?;
        // Also beyond a capture that cannot be opened now.
        let number_last = number_last(&generations)?.max(number_last(&snapshots)?);
        Ok(Self {
            inner: Arc::new(Inner {
                generations,
                snapshots,
                current: RwLock::new(Arc::new(current)),
                captured: Mutex::new(captured.map(Arc::new)),
                cache,
                capture_cache,
                number_next: Mutex::new(number_last + 1),
                buffers_percent: AtomicU32::new(100),
            }),
        })
    }

    /// The generation in use, opened without changing anything below the data directory; `None` if there is none yet.
    ///
    /// # Errors
    /// [`StoreError`] if it is unknown or cannot be read.
    pub(crate) fn open_frozen(data_directory: &Path) -> Result<Option<Generation>, StoreError> {
        let in_use = generations::current(&data_directory.join(Self::PARTS[0]))?;
        let open = |in_use: PathBuf| Generation::open_frozen(&in_use, &new_capture_cache());
        in_use.map(open).transpose()
    }

    /// A copy of a generation that nothing changes, below another data directory; mostly hard links. Writes to the copy do
    /// not affect the generation.
    ///
    /// # Errors
    /// [`StoreError`] if a file cannot be copied.
    pub(crate) fn copy_of(
        generation: &Generation,
        data_directory: &Path,
    ) -> Result<Self, StoreError> {
        let generations = data_directory.join(Self::PARTS[0]);
        fs::create_dir_all(&generations).map_err(failed)?;
        let directory = generations::establish_current(&generations)?;
        generation.link_to(&directory).map_err(failed)?;
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
        generations::name_of(*next - 1)
    }

    fn capture(&self) -> Result<Arc<Generation>, StoreError> {
        let directory = self.snapshots.join(self.next_name());
        self.current().checkpoint(&directory)?;
        sync_tree(&directory)
            .and_then(|()| sync_directory(&self.snapshots))
            .map_err(failed)?;
        let capture = Arc::new(Generation::open_frozen(&directory, &self.capture_cache)?);
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
        let generation = Generation::open(&directory, &self.inner.cache)?;
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
        sync_directory(&inner.generations).map_err(failed)?;
        generations::set_current(&inner.generations, name)?;
        generation.spare();
        let mut current = inner
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, Arc::new(generation)).doom();
        Ok(())
    }
}
