//! Streams and their records (A30).

use super::{Key, KeyBytes, tables};
use crate::bytes::Bytes;
use crate::ids::{Namespace, PartitionKey, StreamName, StreamNumber};
use crate::limits::{RECORD_BYTES_OVERHEAD, STREAM_BYTES_DEFAULT};
use crate::rejection::difference;
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

tables! {
    /// By number. Live until the stream is deleted and its records are swept.
    51 Streams(StreamNumber) -> StreamRecord, HOT;
    /// Streams by name. Live until the stream is deleted.
    52 StreamNames((Namespace, StreamName)) -> StreamNumber, HOT;
    /// By stream, partition and id. Live until retention, a trim or the stream's deletion.
    53 Records((StreamNumber, u32, RecordId)) -> RecordContent;
}

/// A stream: what it was created with, where it ends, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// Its name.
    pub name: StreamName,
    /// What it was created with.
    pub settings: StreamSettings,
    /// The id of the record that was appended last.
    pub last_id: RecordId,
    /// Records that it holds.
    pub records_count: u64,
    /// Their size in bytes, as [`RecordContent::size`] counts it.
    pub bytes: u64,
    /// By number, from 0.
    pub partitions: Vec<PartitionRecord>,
    /// What callers gave up and the sweep has not removed yet.
    pub trim: Trim,
    /// Records that a trigger wanted and the byte limit removed (A32).
    pub lost_count: u64,
    /// Consumer groups that it has.
    pub groups_count: u32,
    /// Those of them that hold retention.
    pub holds_count: u32,
    /// Whether it is deleted: nobody finds it by name, its records are being swept.
    pub is_deleted: bool,
    /// When its sweep timer is due, in milliseconds.
    pub sweep_due_ms: Option<u64>,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
}

/// What a stream is created with; fixed for its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSettings {
    /// Domains of order: records of one key share a partition.
    pub partitions: NonZeroU32,
    /// What may go because it is old or there is much of it.
    pub retention: Retention,
    /// The hard limit in bytes: past it the oldest records go, wanted or not (A32).
    pub bytes_limit: u64,
}

impl StreamSettings {
    /// What is other than `asked` for, in words.
    pub(crate) fn differences(&self, asked: &Self) -> Vec<String> {
        let bound =
            |max: Option<u64>| max.map_or_else(|| "unlimited".to_owned(), |max| max.to_string());
        let bounds = |max: fn(&Retention) -> Option<u64>| {
            (bound(max(&self.retention)), bound(max(&asked.retention)))
        };
        let differences = [
            difference("partitions", (self.partitions, asked.partitions)),
            difference("records_max", bounds(|retention| retention.count_max)),
            difference("age_ms_max", bounds(|retention| retention.age_ms_max)),
            difference("bytes_max", bounds(|retention| retention.bytes_max)),
            difference("hard_bytes_max", (self.bytes_limit, asked.bytes_limit)),
        ];
        differences.into_iter().flatten().collect()
    }
}

/// What may go; `None` keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// The oldest go while there are more records than this.
    pub count_max: Option<u64>,
    /// A record goes at this age, in milliseconds.
    pub age_ms_max: Option<u64>,
    /// The oldest go while the stream holds more bytes than this.
    pub bytes_max: Option<u64>,
}

/// One domain of order within a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// Records that were ever appended.
    pub appended_count: u64,
    /// Records that it holds.
    pub records_count: u64,
    /// Its oldest record: scans begin here, behind what was removed (design rule 4).
    pub front: Option<RecordId>,
}

/// Records that callers gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// All before this one.
    pub before: RecordId,
    /// And so many of the oldest.
    pub count: u64,
}

/// A record of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordContent {
    /// What the producer said.
    pub payload: Bytes,
    /// And about it.
    pub headers: BTreeMap<String, String>,
    /// What placed it in its partition, where the producer gave a key.
    pub key: Option<PartitionKey>,
    /// Its place among all that were ever appended to its partition, from 1.
    pub position: u64,
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
    /// Records that were appended and removed again.
    #[must_use]
    pub fn removed_count(&self) -> u64 {
        self.appended_count - self.records_count
    }
}

impl RecordContent {
    /// What the record counts against limits, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        record_size(&self.payload, &self.headers, self.key.as_ref())
    }
}

/// What a record counts against limits, in bytes: its content, and a constant for its row.
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
    fn encode(&self, out: &mut KeyBytes) {
        (self.ms, self.seq).encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (ms, seq) = Key::decode(bytes)?;
        Some(Self { ms, seq })
    }
}
