//! A generation: one RocksDB directory of rows, and reads from it.

use crate::completeness::check_database;
use crate::direct_io;
use crate::state::store::SharedReader;
use crate::storage::StoreFigures;
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Visitor, Writes};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, ReadOptions,
    Snapshot, WriteBatch, WriteOptions,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const WRITE_BUFFER_BYTES: usize = 64 << 20;
/// All generations that a node writes share one cache.
const BLOCK_CACHE_BYTES: usize = 64 << 20;
/// All its captures share another one. They are read from begin to end, which does not fill it.
const CAPTURE_CACHE_BYTES: usize = 4 << 20;
/// Hot rows are kept decoded elsewhere, so others are read one by one, and rows are merged by the
/// million: larger blocks than RocksDB's 4 KiB make a merge cheaper, with fewer reads and better
/// compression.
const BLOCK_BYTES: usize = 16 << 10;
const BLOOM_BITS_PER_KEY: f64 = 10.0;
/// The number of flushed files before they are merged into the level below, unless they reach 256
/// MiB sooner. A file has rows of all tables, so each merge rewrites the level below from the first
/// table to the last: the more files share one merge, the better. Filters let reads of single rows
/// skip most of them.
const UNMERGED_FILES: i32 = 12;
/// With this many more, merges have fallen behind and writes are slowed down; with twice this many,
/// stopped.
const UNMERGED_FILES_SLACK: i32 = 12;

/// Memtables remember the place of the last insert of each table, which is the first byte of a key: the rows of an entry
/// come in key order, and those of open runs are close to each other, so most searches for a place begin near it. The
/// bindings have no function for this setting.
const INSERT_HINTS: &str = "memtable_insert_with_hint_prefix_extractor=rocksdb.FixedPrefix.1";

/// The header of a write batch: a sequence number and a count. In bytes.
const BATCH_HEADER_BYTES: usize = 12;
/// What a write batch has for a row besides its key and value: a tag and two lengths, which mostly take less. In bytes.
const ROW_OVERHEAD_BYTES: usize = 6;

/// One RocksDB directory of rows; deleted when it is dropped after [`Generation::doom`].
pub(crate) struct Generation {
    /// Invariant: present until drop.
    database: Option<DB>,
    directory: PathBuf,
    is_frozen: bool,
    is_doomed: AtomicBool,
}

/// The block cache of the generations that a node writes.
pub(crate) fn new_cache() -> Cache {
    Cache::new_lru_cache(BLOCK_CACHE_BYTES)
}

/// The block cache of a node's captures.
pub(crate) fn new_capture_cache() -> Cache {
    Cache::new_lru_cache(CAPTURE_CACHE_BYTES)
}

impl Generation {
    /// Opens or creates a directory for writing.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be used, or has data and lacks the file that describes it.
    pub(crate) fn open(directory: &Path, cache: &Cache) -> Result<Self, StoreError> {
        check_database(directory).map_err(failed)?;
        let mut blocks = blocks(cache);
        blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
        let mut options = options(&blocks).map_err(failed)?;
        options.create_if_missing(true);
        options.set_use_direct_io_for_flush_and_compaction(direct_io::is_supported(directory));
        let database = DB::open(&options, directory).map_err(failed)?;
        Ok(Self::over(database, directory, false))
    }

    /// Opens an existing directory that nothing changes, without changing it.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub(crate) fn open_frozen(directory: &Path, cache: &Cache) -> Result<Self, StoreError> {
        // Without filters: they take memory, and rows are read from begin to end.
        let options = options(&blocks(cache)).map_err(failed)?;
        let database = DB::open_for_read_only(&options, directory, false).map_err(failed)?;
        Ok(Self::over(database, directory, true))
    }

    fn over(database: DB, directory: &Path, is_frozen: bool) -> Self {
        let directory = directory.to_owned();
        Self {
            database: Some(database),
            directory,
            is_frozen,
            is_doomed: AtomicBool::new(false),
        }
    }

    /// The directory of its files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Deletes the directory once nothing reads it.
    pub(crate) fn doom(&self) {
        self.is_doomed.store(true, Ordering::Relaxed);
    }

    /// Keeps the directory after all.
    pub(crate) fn spare(&self) {
        self.is_doomed.store(false, Ordering::Relaxed);
    }

    /// Executes the writes atomically, without a write-ahead log.
    pub(crate) fn write(&self, writes: &Writes) -> Result<(), StoreError> {
        let bytes = writes.bytes() + writes.len() * ROW_OVERHEAD_BYTES + BATCH_HEADER_BYTES;
        let mut batch = WriteBatch::with_capacity_bytes(bytes);
        for (key, value) in writes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.database().write_opt(batch, &options).map_err(failed)
    }

    /// Makes everything written so far durable.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.database().flush().map_err(failed)
    }

    /// Lets memtables fill `percent` percent of their default size before they are flushed.
    pub(crate) fn limit_buffers(&self, percent: u32) -> Result<(), StoreError> {
        let bytes = WRITE_BUFFER_BYTES / 100 * percent as usize;
        self.database()
            .set_options(&[("write_buffer_size", &bytes.to_string())])
            .map_err(failed)
    }

    /// Its current figures.
    pub(crate) fn figures(&self) -> StoreFigures {
        StoreFigures::of(self.database())
    }

    /// Makes everything written so far durable, and links it into a new directory.
    pub(crate) fn checkpoint(&self, directory: &Path) -> Result<(), StoreError> {
        self.flush()?;
        let checkpoint = rocksdb::checkpoint::Checkpoint::new(self.database()).map_err(failed)?;
        // Without another flush: what was written after this one may be missing.
        checkpoint
            .create_checkpoint_with_log_size(directory, u64::MAX)
            .map_err(failed)
    }

    /// Links the files of rows into a new directory, and copies the others. Nothing may change this one meanwhile.
    pub(crate) fn link_to(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        for entry in fs::read_dir(&self.directory)? {
            let file = entry?.path();
            let Some(name) = file.file_name() else {
                continue;
            };
            let copy = directory.join(name);
            // RocksDB never writes to a file of rows again. Some file systems have no links.
            let is_of_rows = file.extension().is_some_and(|ending| ending == "sst");
            if !is_of_rows || fs::hard_link(&file, &copy).is_err() {
                fs::copy(&file, &copy)?;
            }
        }
        Ok(())
    }

    /// Calls `read` with the current rows, which do not change while it runs.
    pub(crate) fn frozen(&self, read: &mut dyn FnMut(&dyn Reader)) {
        let snapshot = self.database().snapshot();
        read(&Rows {
            snapshot: Some(&snapshot),
            ..self.rows()
        });
    }

    fn database(&self) -> &DB {
        self.database
            .as_ref()
            .expect("the database is there until drop")
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            database: self.database(),
            snapshot: None,
            scans_fill_cache: !self.is_frozen,
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        // Closed first: RocksDB writes to its directory when it closes.
        drop(self.database.take());
        if self.is_doomed.load(Ordering::Relaxed)
            && let Err(error) = fs::remove_dir_all(&self.directory)
        {
            tracing::warn!(directory = %self.directory.display(), %error, "an old generation of \
                                                                           the state could not be \
                                                                           deleted");
        }
    }
}

impl Reader for Generation {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.rows().get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.rows().scan(range, order, visitor)
    }
}

const fn assert_shared<T: SharedReader>() {}
const _: () = assert_shared::<Generation>();

/// The rows of a database, at a snapshot or current.
struct Rows<'a> {
    database: &'a DB,
    snapshot: Option<&'a Snapshot<'a>>,
    scans_fill_cache: bool,
}

impl Rows<'_> {
    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if let Some(snapshot) = self.snapshot {
            options.set_snapshot(snapshot);
        }
        options
    }
}

impl Reader for Rows<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.database.get_opt(key, &self.options()).map_err(failed)
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        if range.from >= range.to {
            return Ok(());
        }
        let mut options = self.options();
        options.fill_cache(self.scans_fill_cache);
        options.set_iterate_lower_bound(range.from.clone());
        options.set_iterate_upper_bound(range.to.clone());
        let mode = match order {
            Order::Ascending => IteratorMode::From(&range.from, Direction::Forward),
            Order::Descending => IteratorMode::End,
        };
        for row in self.database.iterator_opt(mode, options) {
            let (key, value) = row.map_err(failed)?;
            if visitor(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Wraps an error of the store.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError(Box::new(error))
}

fn blocks(cache: &Cache) -> BlockBasedOptions {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_block_size(BLOCK_BYTES);
    blocks
}

fn options(blocks: &BlockBasedOptions) -> Result<Options, rocksdb::Error> {
    let mut options = Options::default().get_options_from_string(INSERT_HINTS)?;
    options.set_paranoid_checks(true);
    options.set_block_based_table_factory(blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    // Memtables have no filter: it takes a cache miss for each written row, and a command writes ten
    // rows for each key that it looks up in vain.
    options.set_level_zero_file_num_compaction_trigger(UNMERGED_FILES);
    options.set_level_zero_slowdown_writes_trigger(UNMERGED_FILES + UNMERGED_FILES_SLACK);
    options.set_level_zero_stop_writes_trigger(UNMERGED_FILES + 2 * UNMERGED_FILES_SLACK);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(2);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocksdb::properties::CUR_SIZE_ACTIVE_MEM_TABLE;
    use std::ops::ControlFlow;

    /// Writes 24 MiB; true if RocksDB began to flush them.
    fn flushes(generation: &Generation) -> bool {
        for row in 0..24_u32 {
            let row = (row.to_be_bytes().to_vec(), Some(vec![7; 1 << 20]));
            generation.write(&Writes::from([row])).unwrap();
        }
        let bytes = generation
            .database()
            .property_int_value(CUR_SIZE_ACTIVE_MEM_TABLE);
        bytes.unwrap().unwrap() < 24 << 20
    }

    #[test]
    fn a_memtable_is_flushed_at_the_limit_that_was_set() {
        let directory = tempfile::tempdir().unwrap();
        let generation = Generation::open(&directory.path().join("whole"), &new_cache()).unwrap();
        assert!(!flushes(&generation));
        let generation = Generation::open(&directory.path().join("part"), &new_cache()).unwrap();
        generation.limit_buffers(25).unwrap();
        assert!(flushes(&generation));
    }

    #[test]
    fn memtables_remember_where_rows_of_a_table_were_inserted() {
        let directory = tempfile::tempdir().unwrap();
        let generation = Generation::open(directory.path(), &new_cache()).unwrap();
        let files = std::fs::read_dir(generation.directory()).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let written = paths
            .filter(|path| path.to_string_lossy().contains("OPTIONS-"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .find(|options| options.contains(INSERT_HINTS))
            .expect("RocksDB writes the options that it uses");
        // The other settings are not lost.
        assert!(written.contains("write_buffer_size=67108864"));
        let is_direct = direct_io::is_supported(directory.path());
        assert!(written.contains(&format!(
            "use_direct_io_for_flush_and_compaction={is_direct}"
        )));
    }

    #[test]
    fn captures_are_read_through_one_small_cache_which_scans_do_not_fill() {
        let directory = tempfile::tempdir().unwrap();
        let generation = Generation::open(&directory.path().join("live"), &new_cache()).unwrap();
        let row = |row: u16| (row.to_be_bytes().to_vec(), Some(vec![7; 1_000]));
        generation.write(&(0..10_000).map(row).collect()).unwrap();
        let cache = new_capture_cache();
        let captures = ["one", "two"].map(|name| {
            let directory = directory.path().join(name);
            generation.checkpoint(&directory).unwrap();
            Generation::open_frozen(&directory, &cache).unwrap()
        });
        let empty_bytes = cache.get_usage();
        for capture in &captures {
            let mut rows = 0;
            let all = KeyRange {
                from: vec![],
                to: vec![0xFF],
            };
            let mut count = |_: &[u8], _: &[u8]| {
                rows += 1;
                ControlFlow::Continue(())
            };
            capture.scan(&all, Order::Ascending, &mut count).unwrap();
            assert_eq!(rows, 10_000);
        }
        assert_eq!(cache.get_usage(), empty_bytes);
        for capture in &captures {
            assert!(capture.get(&[0, 1]).unwrap().is_some());
        }
        assert!(cache.get_usage() > empty_bytes);
    }
}
