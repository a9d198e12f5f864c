//! The log device of a real node: a RocksDB instance whose write-ahead log is synced.

use crate::direct_io;
use crate::log::device::{DeviceError, Durability, Fact, LogDevice, Operation, RecordVisitor};
use crate::storage::StoreFigures;
use bytes::Bytes;
use rocksdb::{
    DB, DBCompressionType, DBRecoveryMode, Direction, IteratorMode, Options, ReadOptions,
    WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;

const PREFIX_RECORD: u8 = b'e';
const PREFIX_FACT: u8 = b'f';
const KEY_BYTES: usize = 9;
const WRITE_BUFFER_BYTES: usize = 32 << 20;
/// RocksDB merges flushed files once there are this many. By then most records are purged. Until then, the files use up to
/// 256 MiB.
const UNMERGED_FILES: i32 = 8;
const FACTS: [Fact; 5] = [
    Fact::Identity,
    Fact::Vote,
    Fact::Purged,
    Fact::Committed,
    Fact::Lost,
];

/// The log in a RocksDB directory.
pub(crate) struct RocksLog {
    database: DB,
}

impl RocksLog {
    /// Opens or creates the directory.
    ///
    /// # Errors
    /// [`rocksdb::Error`]; of kind `Corruption` when synced bytes were altered.
    pub(crate) fn open(directory: &Path) -> Result<Self, rocksdb::Error> {
        let mut options = options();
        options.create_if_missing(true);
        options.set_use_direct_io_for_flush_and_compaction(direct_io::is_supported(directory));
        Ok(Self {
            database: DB::open(&options, directory)?,
        })
    }

    /// Opens an existing directory without changing it. Writes fail.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_frozen(directory: &Path) -> Result<Self, rocksdb::Error> {
        Ok(Self {
            database: DB::open_for_read_only(&options(), directory, false)?,
        })
    }
}

fn options() -> Options {
    let mut options = Options::default();
    // A power cut leaves a torn tail; any other damage concerns entries that this node
    // acknowledged, and RocksDB's default would silently drop them and everything after them.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);
    // Callers may compress payloads themselves; the log lives for minutes.
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_level_zero_file_num_compaction_trigger(UNMERGED_FILES);
    options.set_max_background_jobs(1);
    options.set_keep_log_file_num(2);
    options
}

impl LogDevice for RocksLog {
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError> {
        let mut facts = BTreeMap::new();
        for fact in FACTS {
            if let Some(bytes) = self.database.get(fact_key(fact)).map_err(failed)? {
                facts.insert(fact, bytes);
            }
        }
        Ok(facts)
    }

    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(record_key(to).to_vec());
        options.fill_cache(false);
        let start = record_key(from);
        let mode = IteratorMode::From(&start, Direction::Forward);
        for row in self.database.iterator_opt(mode, options) {
            let (key, record) = row.map_err(failed)?;
            let index = key[1..]
                .try_into()
                .map_err(|_| failed(BadKey(key.to_vec())))?;
            if !visitor(u64::from_be_bytes(index), Bytes::from(record)) {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError> {
        let mut batch = WriteBatch::default();
        for operation in operations {
            match operation {
                Operation::Put { index, record } => batch.put(record_key(*index), record),
                Operation::Truncate { from } => {
                    batch.delete_range(record_key(*from), record_key(u64::MAX));
                }
                Operation::Purge { to } => {
                    batch.delete_range(record_key(0), record_key(to.saturating_add(1)));
                }
                Operation::Set { fact, bytes } => batch.put(fact_key(*fact), bytes),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        self.database.write_opt(batch, &options).map_err(failed)
    }

    fn figures(&self) -> Option<StoreFigures> {
        Some(StoreFigures::of(&self.database))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("expected a key of {KEY_BYTES} bytes, but found {0:?}")]
struct BadKey(Vec<u8>);

fn record_key(index: u64) -> [u8; KEY_BYTES] {
    let mut key = [PREFIX_RECORD; KEY_BYTES];
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}

fn fact_key(fact: Fact) -> [u8; 2] {
    let name = match fact {
        Fact::Identity => b'i',
        Fact::Vote => b'v',
        Fact::Purged => b'p',
        Fact::Committed => b'c',
        Fact::Lost => b'l',
    };
    [PREFIX_FACT, name]
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> DeviceError {
    DeviceError(Box::new(error))
}
