//! A snapshot and its transfer format: key-value pairs, not RocksDB files, so that nodes with
//! different RocksDB versions understand each other.
//!
//! A part is an lz4 frame of rows, each `length (4) | key | length (4) | value`, preceded by its
//! crc32. The end names the number of rows and a digest of them all, so a missing part is detected.

use crate::raft::type_config::TypeConfig;
use crate::state::rows::{self, RowError};
use crate::state::store::{Incoming, SharedReader, StateStore};
use bytes::Bytes;
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Writes};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// A snapshot with its metadata.
pub(crate) type Snapshot = openraft::type_config::alias::SnapshotOf<TypeConfig, SnapshotData>;
type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;

/// Rows are packed into parts of about this size before compression.
const PART_BYTES: usize = 1 << 20;
/// The maximum unpacked size of a part: a row is far smaller than the difference.
const PART_BYTES_MAX: usize = 64 << 20;

/// The data of a snapshot that openraft handles.
pub(crate) enum SnapshotData {
    /// This node's last capture.
    Captured(Arc<dyn SharedReader>),
    /// Received from a leader.
    Received(Box<dyn Incoming>),
}

impl SnapshotData {
    /// The rows, ready to be installed.
    pub(crate) fn into_incoming(
        self,
        store: &dyn StateStore,
    ) -> Result<Box<dyn Incoming>, StoreError> {
        let capture = match self {
            Self::Received(incoming) => return Ok(incoming),
            Self::Captured(capture) => capture,
        };
        let mut incoming = store.receive()?;
        let mut range = rows::traveling();
        loop {
            let (writes, rest) = take_batch(capture.as_ref(), range)?;
            if writes.is_empty() {
                return Ok(incoming);
            }
            incoming.write(&writes)?;
            range = rest;
        }
    }
}

/// The metadata from the rows.
pub(crate) fn meta_of(rows: &dyn Reader) -> Result<SnapshotMeta, RowError> {
    Ok(SnapshotMeta {
        last_log_id: rows::applied_position(rows)?.log_id,
        last_membership: rows::stored_membership(rows)?,
    })
}

/// A part of a snapshot in transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Rows { checksum: u32, compressed: Bytes },
    End { row_count: u64, digest: u128 },
}

/// Why a received snapshot is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("expected the checksum {expected:08x}, but the part gives {found:08x}")]
    Checksum { expected: u32, found: u32 },
    #[error("the part cannot be unpacked: {0}")]
    Unpack(String),
    #[error("expected {expected} rows with their digest, but received {found}")]
    Incomplete { expected: u64, found: u64 },
}

/// Packs all rows of a snapshot, which must not change meanwhile.
pub(crate) struct Packer {
    rows: Arc<dyn SharedReader>,
    /// What is not packed yet; unset after the end.
    rest: Option<KeyRange>,
    /// The number of rows in all parts so far.
    pub(crate) row_count: u64,
    hasher: Xxh3,
}

impl Packer {
    pub(crate) fn new(rows: Arc<dyn SharedReader>) -> Self {
        Self {
            rows,
            rest: Some(rows::traveling()),
            row_count: 0,
            hasher: Xxh3::new(),
        }
    }

    /// The next part; `None` after the end.
    pub(crate) fn pack(&mut self) -> Result<Option<Part>, PartError> {
        let Some(range) = self.rest.take() else {
            return Ok(None);
        };
        let (writes, rest) = take_batch(self.rows.as_ref(), range)?;
        if writes.is_empty() {
            return Ok(Some(Part::End {
                row_count: self.row_count,
                digest: self.hasher.digest128(),
            }));
        }
        self.rest = Some(rest);
        self.row_count += writes.len() as u64;
        let plain = plain(&writes);
        self.hasher.update(&plain);
        compress(&plain).map(Some)
    }
}

/// Unpacks parts until the end, and returns their rows.
#[derive(Default)]
pub(crate) struct Unpacker {
    row_count: u64,
    hasher: Xxh3,
}

impl Unpacker {
    /// Unpacks a part of rows.
    pub(crate) fn rows(&mut self, checksum: u32, compressed: &[u8]) -> Result<Writes, PartError> {
        let found = crc32fast::hash(compressed);
        if found != checksum {
            return Err(PartError::Checksum {
                expected: checksum,
                found,
            });
        }
        let plain = decompress(compressed)?;
        let writes = parse(&plain)?;
        self.hasher.update(&plain);
        self.row_count += writes.len() as u64;
        Ok(writes)
    }

    /// Checks the end: nothing is missing.
    pub(crate) fn end(self, row_count: u64, digest: u128) -> Result<(), PartError> {
        if row_count != self.row_count || digest != self.hasher.digest128() {
            return Err(PartError::Incomplete {
                expected: row_count,
                found: self.row_count,
            });
        }
        Ok(())
    }
}

/// The first rows of the range, a part's worth, and the rest of the range. No rows mean the end.
fn take_batch(rows: &dyn Reader, range: KeyRange) -> Result<(Writes, KeyRange), StoreError> {
    let mut writes = Writes::new();
    let mut bytes = 0;
    rows.scan(&range, Order::Ascending, &mut |key, value| {
        bytes += key.len() + value.len();
        writes.put(key, value);
        if bytes < PART_BYTES {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let from = match writes.keys().next_back() {
        // The smallest key after the last.
        Some(last) => [last, &[0]].concat(),
        None => range.from,
    };
    let to = range.to;
    Ok((writes, KeyRange { from, to }))
}

fn plain(writes: &Writes) -> Vec<u8> {
    let mut plain = Vec::with_capacity(PART_BYTES);
    for (key, value) in writes {
        for field in [key, value.unwrap_or_default()] {
            let length = u32::try_from(field.len()).expect("a row is bounded far below 4 GiB");
            plain.extend_from_slice(&length.to_be_bytes());
            plain.extend_from_slice(field);
        }
    }
    plain
}

fn parse(mut plain: &[u8]) -> Result<Writes, PartError> {
    let mut writes = Writes::new();
    while !plain.is_empty() {
        let key = take_field(&mut plain)?;
        let value = take_field(&mut plain)?;
        writes.put(key, value);
    }
    Ok(writes)
}

fn take_field<'a>(plain: &mut &'a [u8]) -> Result<&'a [u8], PartError> {
    let cut_short = || PartError::Unpack("a row is cut short".to_owned());
    let (length, rest) = plain.split_first_chunk::<4>().ok_or_else(cut_short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| cut_short())?;
    let (field, rest) = rest.split_at_checked(length).ok_or_else(cut_short)?;
    *plain = rest;
    Ok(field)
}

fn compress(plain: &[u8]) -> Result<Part, PartError> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder
        .write_all(plain)
        .map_err(|error| PartError::Unpack(error.to_string()))?;
    let compressed = encoder
        .finish()
        .map_err(|error| PartError::Unpack(error.to_string()))?;
    Ok(Part::Rows {
        checksum: crc32fast::hash(&compressed),
        compressed: compressed.into(),
    })
}

fn decompress(compressed: &[u8]) -> Result<Vec<u8>, PartError> {
    let mut plain = Vec::new();
    lz4_flex::frame::FrameDecoder::new(compressed)
        .take(PART_BYTES_MAX as u64)
        .read_to_end(&mut plain)
        .map_err(|error| PartError::Unpack(error.to_string()))?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::store::MemoryStore;

    fn store(row_count: u32) -> MemoryStore {
        let mut store = MemoryStore::default();
        let row = |number: u32| (number.to_be_bytes().to_vec(), Some(vec![7; 5_000]));
        store.write(&(0..row_count).map(row).collect());
        store.write(&Writes::from([(vec![0xF2, 1], Some(b"local".to_vec()))]));
        store
    }

    fn packed(store: &MemoryStore) -> Vec<Part> {
        let mut packer = Packer::new(Arc::new(store.clone()));
        std::iter::from_fn(|| packer.pack().unwrap()).collect()
    }

    fn unpack(parts: &[Part]) -> Result<MemoryStore, PartError> {
        let mut unpacker = Unpacker::default();
        let mut received = MemoryStore::default();
        for part in parts {
            match part {
                Part::Rows {
                    checksum,
                    compressed,
                } => received.write(&unpacker.rows(*checksum, compressed)?),
                Part::End { row_count, digest } => {
                    return unpacker.end(*row_count, *digest).map(|()| received);
                }
            }
        }
        Err(PartError::Unpack("no end".to_owned()))
    }

    #[test]
    fn a_snapshot_arrives_as_it_left_but_for_the_local_rows() {
        let store = store(1_000);
        let parts = packed(&store);
        assert!(parts.len() > 3, "several parts and an end");
        let received = unpack(&parts).unwrap();
        assert_eq!(received.rows().count(), 1_000);
        for (key, value) in received.rows() {
            assert_eq!(store.get(key).unwrap().unwrap(), value);
        }
    }

    #[test]
    fn a_missing_repeated_or_altered_part_is_refused() {
        let parts = packed(&store(1_000));
        let missing = [&parts[..1], &parts[2..]].concat();
        assert!(matches!(
            unpack(&missing),
            Err(PartError::Incomplete { .. })
        ));
        let repeated = [&parts[..1], &parts[..]].concat();
        assert!(matches!(
            unpack(&repeated),
            Err(PartError::Incomplete { .. })
        ));
        let mut altered = parts;
        let Part::Rows { compressed, .. } = &mut altered[0] else {
            panic!("rows first")
        };
        let mut bytes = compressed.to_vec();
        bytes[20] ^= 1;
        *compressed = bytes.into();
        assert!(matches!(unpack(&altered), Err(PartError::Checksum { .. })));
    }

    #[test]
    fn the_state_of_a_fresh_replica_travels_too() {
        assert!(unpack(&packed(&MemoryStore::default())).is_ok());
    }
}
