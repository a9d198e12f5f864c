//! Streams and their records (A30).

use super::{Key, tables};
use crate::bytes::Bytes;
use crate::difference::difference;
use crate::ids::{Namespace, PartitionKey, StreamName, StreamNumber};
use crate::limits::{RECORD_BYTES_OVERHEAD, STREAM_BYTES_DEFAULT};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

tables! {
    /// By number. Live until the stream is deleted and its records are swept.
    51 Streams(StreamNumber) -> StreamRecord, HOT;
    /// Streams by name. Live until the stream is deleted.
    52 StreamNames((Namespace, StreamName)) -> StreamNumber, HOT;
    /// How many streams a namespace has. Live while it has any.
    69 StreamCounts(Namespace) -> u64;
    /// By stream, partition and id. Live until retention, a trim or the stream's deletion.
    53 Records((StreamNumber, u32, RecordId)) -> RecordContent => |record| record.payload.len();
}

/// A stream: its settings, its end and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// Its name.
    pub name: StreamName,
    /// Its settings.
    pub settings: StreamSettings,
    /// The id of the record that was appended last.
    pub last_id: RecordId,
    /// Records that it holds.
    pub record_count: u64,
    /// Their size in bytes, as [`RecordContent::size`] counts it.
    pub bytes: u64,
    /// By number, from 0.
    pub partitions: Vec<PartitionRecord>,
    /// Records that callers trimmed and the sweep has not removed yet.
    pub trim: Trim,
    /// Lost records: removed by the hard limit before a trigger consumed them (A32).
    pub lost_count: u64,
    /// Consumer groups that it has.
    pub group_count: u32,
    /// Those of them that hold retention.
    pub holds_count: u32,
    /// Whether it is deleted: it has no name, and its records are being swept.
    pub is_deleted: bool,
    /// When its sweep timer is due, in milliseconds.
    pub sweep_due_ms: Option<u64>,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
}

/// The settings of a stream, which never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSettings {
    /// The number of partitions. Records with the same key share a partition.
    pub partitions: NonZeroU32,
    /// The age or amount beyond which records are removed.
    pub retention: Retention,
    /// The hard limit in bytes: beyond it the oldest records are removed, consumed or not (A32).
    pub bytes_limit: u64,
}

impl StreamSettings {
    /// Describes the settings that differ from `requested`.
    pub(crate) fn differences(&self, requested: &Self) -> Vec<String> {
        let bound =
            |max: Option<u64>| max.map_or_else(|| "unlimited".to_owned(), |max| max.to_string());
        let differing = |name: &str, max: fn(&Retention) -> Option<u64>| {
            difference(
                name,
                bound(max(&self.retention)),
                bound(max(&requested.retention)),
            )
        };
        let differences = [
            difference("partitions", self.partitions, requested.partitions),
            differing("max_records", |retention| retention.count_max),
            differing("max_age_ms", |retention| retention.max_age_ms),
            differing("max_bytes", |retention| retention.max_bytes),
            difference("hard_limit_bytes", self.bytes_limit, requested.bytes_limit),
        ];
        differences.into_iter().flatten().collect()
    }
}

/// The limits of retention; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// The maximum number of records.
    pub count_max: Option<u64>,
    /// The maximum age of a record, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// The maximum size, in bytes.
    pub max_bytes: Option<u64>,
}

/// A part of a stream with its own order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// Records that were ever appended.
    pub appended_count: u64,
    /// Records that it holds.
    pub record_count: u64,
    /// Its oldest record: scans begin here and skip the tombstones of removed records (design rule 4).
    pub front: Option<RecordId>,
}

/// Records that callers trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// All records before this one.
    pub before: RecordId,
    /// And this many of the oldest records.
    pub count: u64,
}

/// A record of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordContent {
    /// The payload.
    pub payload: Bytes,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The partition key, if the producer gave one.
    pub key: Option<PartitionKey>,
    /// Its position among all records that were ever appended to the partition, from 1.
    pub position: u64,
    /// How many runs, each started by the record of the one before it, led to the record; 0 for one from outside (W62).
    pub hops: u8,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            partitions: NonZeroU32::MIN,
            retention: Retention::default(),
            bytes_limit: STREAM_BYTES_DEFAULT,
        }
    }
}

impl StreamRecord {
    /// The partition `number`, if the stream has it.
    #[must_use]
    pub fn partition(&self, number: u32) -> Option<&PartitionRecord> {
        self.partitions.get(usize::try_from(number).ok()?)
    }
}

impl PartitionRecord {
    /// The number of records that were appended and removed again.
    #[must_use]
    pub fn removed_count(&self) -> u64 {
        self.appended_count - self.record_count
    }
}

impl RecordContent {
    /// The size of the record as counted against limits, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        record_size(&self.payload, &self.headers, self.key.as_ref())
    }
}

/// The size of a record as counted against limits, in bytes: its content plus a constant for its row.
pub(crate) fn record_size(
    payload: &[u8],
    headers: &BTreeMap<String, String>,
    key: Option<&PartitionKey>,
) -> u64 {
    let headers = headers.iter().map(|(name, value)| name.len() + value.len());
    let key = key.map_or(0, |key| key.as_str().len());
    (payload.len() + headers.sum::<usize>() + key) as u64 + RECORD_BYTES_OVERHEAD
}

impl Key for RecordId {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.ms, self.seq).encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (ms, seq) = Key::decode(bytes)?;
        Some(Self { ms, seq })
    }
}
