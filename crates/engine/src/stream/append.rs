//! Appending records to a stream (A30).

use super::create::{admit, create, has_room_for_dead_letters};
use super::quarantine::check_in_service;
use super::{NumberedStream, RecordId, announce, find, retention, store};
use crate::bytes::Bytes;
use crate::codec::fingerprint;
use crate::ids::{Namespace, PartitionKey, StreamName};
use crate::limits::{
    APPEND_BYTES_MAX, APPEND_RECORDS_MAX, HEADER_BYTES_MAX, HEADERS_MAX, PAYLOAD_BYTES_MAX,
};
use crate::quota::{self, QuotaDimension};
use crate::rejection::{Rejection, check_bytes};
use crate::reply::RecordsAppended;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{RecordContent, Records, StreamRecord, StreamSettings, record_size};
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Appends records in order. A missing stream is created with default settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendRecords {
    /// The stream.
    pub stream: StreamName,
    /// The records, 1 to 1000 of them.
    pub records: Vec<NewRecord>,
}

/// A record as its producer sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRecord {
    /// The payload, at most 1 MiB.
    pub payload: Bytes,
    /// The headers, at most 64.
    pub headers: BTreeMap<String, String>,
    /// The partition key, which selects the partition and is stored with the record.
    pub key: Option<PartitionKey>,
    /// An explicit partition, which takes precedence over the key.
    pub partition: Option<u32>,
}

impl AppendRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RecordsAppended> {
        self.check()?;
        let bytes = self.check_quota(turn, namespace)?;
        quota::spend(
            turn,
            namespace,
            (QuotaDimension::AppendBytesPerMinute, bytes),
        )?;
        let mut target = open(turn, namespace, &self.stream)?;
        let before = target.stream.1.last_id;
        for record in &self.records {
            let partition = target.place(record)?;
            push(turn, &mut target.stream, partition, record.content(0));
        }
        let first = before.following(turn.now_ms());
        target.finish(turn)?;
        Ok(RecordsAppended { first })
    }

    /// Checks that the quotas allow the append, and returns what it counts for, in bytes. At its byte limit, a stream loses
    /// its oldest records, so it does not grow further.
    fn check_quota(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<u64> {
        let found = find(turn, namespace, &self.stream)?;
        let room = found.as_ref().map_or(u64::MAX, |(_, stream)| {
            stream.settings.bytes_limit.saturating_sub(stream.bytes)
        });
        let records = self.records.iter();
        let bytes = records.map(NewRecord::size).sum::<u64>();
        let largest = self.records.iter().map(|record| record.payload.len()).max();
        let needs = [
            (QuotaDimension::AppendBytesPerMinute, bytes),
            (QuotaDimension::Streams, u64::from(found.is_none())),
            (QuotaDimension::StreamBytes, bytes.min(room)),
            (QuotaDimension::PayloadBytes, largest.unwrap_or(0) as u64),
        ];
        quota::check(turn, namespace, &needs)?;
        Ok(bytes)
    }

    fn check(&self) -> Result<(), Rejection> {
        if self.records.is_empty() {
            return Err(Rejection::RecordsMissing);
        }
        if self.records.len() > APPEND_RECORDS_MAX {
            return Err(Rejection::too_many(
                "records in one call",
                APPEND_RECORDS_MAX,
            ));
        }
        let mut bytes = 0;
        for record in &self.records {
            bytes += record.check()?;
        }
        check_bytes("the call", bytes, APPEND_BYTES_MAX)
    }
}

impl NewRecord {
    /// The record's size in bytes; rejected if a part exceeds its limit.
    fn check(&self) -> Result<usize, Rejection> {
        check_bytes("the payload", self.payload.len(), PAYLOAD_BYTES_MAX)?;
        if self.headers.len() > HEADERS_MAX {
            return Err(Rejection::too_many("headers of a record", HEADERS_MAX));
        }
        let mut bytes = self.payload.len();
        for (name, value) in &self.headers {
            let header_bytes = name.len() + value.len();
            check_bytes("a header", header_bytes, HEADER_BYTES_MAX)?;
            bytes += header_bytes;
        }
        Ok(bytes)
    }

    /// What it counts for in its stream, in bytes.
    fn size(&self) -> u64 {
        record_size(&self.payload, &self.headers, self.key.as_ref())
    }

    /// Rejects a record larger than the stream's hard limit: retention would remove it unread.
    fn check_fits(&self, stream: &StreamRecord) -> Result<(), Rejection> {
        let bytes = self.size();
        let bytes_max = stream.settings.bytes_limit;
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(Rejection::TooLarge {
            noun: "the record".to_owned(),
            bytes,
            bytes_max,
        })
    }

    /// The partition: the explicit one, else that of the key, else 0.
    fn choose_partition(&self, stream: &StreamRecord) -> Result<u32, Rejection> {
        let partitions = stream.settings.partitions;
        match (self.partition, &self.key) {
            (Some(partition), _) if partition < partitions.get() => Ok(partition),
            (Some(partition), _) => Err(Rejection::PartitionNotFound {
                stream: stream.name.clone(),
                partition,
                partitions: partitions.get(),
            }),
            (None, Some(key)) => Ok(partition_of(key, partitions)),
            (None, None) => Ok(0),
        }
    }

    fn content(&self, hops: u8) -> NewContent {
        NewContent {
            payload: self.payload.clone(),
            headers: self.headers.clone(),
            key: self.key.clone(),
            hops,
        }
    }
}

/// A stream that records are appended to.
struct Target {
    stream: NumberedStream,
    is_new: bool,
}

/// The stream `name`, which is created if it is missing.
fn open(turn: &mut Turn<'_, '_>, namespace: &Namespace, name: &StreamName) -> TurnResult<Target> {
    let found = find(turn, namespace, name)?;
    let is_new = found.is_none();
    let stream = match found {
        Some(found) => {
            check_in_service(turn, found.0, name)?;
            found
        }
        None => {
            admit(turn, namespace)?;
            create(turn, namespace, name, StreamSettings::default())?
        }
    };
    Ok(Target { stream, is_new })
}

impl Target {
    /// The partition for a record, unless the stream cannot have the record.
    fn place(&self, record: &NewRecord) -> Result<u32, Rejection> {
        record.check_fits(&self.stream.1)?;
        record.choose_partition(&self.stream.1)
    }

    /// Appends one record. A panic quarantines the stream, not the subject that appends; if the stream is quarantined
    /// already, it is attributed to that subject.
    fn grow(
        mut self,
        turn: &mut Turn<'_, '_>,
        partition: u32,
        new: NewContent,
    ) -> Result<RecordId, StoreError> {
        let (number, is_new) = (self.stream.0, self.is_new);
        let grow = |turn: &mut Turn<'_, '_>| {
            let id = push(turn, &mut self.stream, partition, new);
            self.finish(turn)?;
            Ok(id)
        };
        // A stream created in this turn is rolled back with it and cannot be quarantined.
        if is_new || turn.is_stream_quarantined(number) {
            grow(turn)
        } else {
            turn.with_subject(Subject::Stream(number), grow)
        }
    }

    /// Stores a stream that has grown, applies its limits, and wakes its readers.
    fn finish(self, turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
        let (number, mut stream) = self.stream;
        retention::sweep(turn, number, &mut stream)?;
        announce(turn, &stream);
        let key = (stream.namespace.clone(), stream.name.clone());
        store(turn, number, stream)?;
        if self.is_new {
            trigger::stream_appeared(turn, &key)?;
        }
        Ok(())
    }
}

/// A record that a run appends.
pub(crate) struct Emission<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) stream: &'a StreamName,
    pub(crate) record: NewRecord,
    /// See [`RecordContent::hops`].
    pub(crate) hops: u8,
}

/// Appends a run's record to a stream, which is created if it is missing.
pub(crate) fn emit(turn: &mut Turn<'_, '_>, emission: &Emission<'_>) -> TurnResult<RecordId> {
    let record = &emission.record;
    record.check()?;
    let target = open(turn, emission.namespace, emission.stream)?;
    let partition = target.place(record)?;
    Ok(target.grow(turn, partition, record.content(emission.hops))?)
}

/// The partition of a key: XXH3 in 64 bits over its bytes, modulo the number of partitions. Must never change,
/// because it determines where the records of a key are stored.
#[must_use]
pub fn partition_of(key: &PartitionKey, partitions: NonZeroU32) -> u32 {
    let partition = fingerprint(key.as_str().as_bytes()) % u64::from(partitions.get());
    u32::try_from(partition).expect("a remainder of a u32")
}

/// The content of a record, before its partition and id are assigned.
pub(crate) struct NewContent {
    pub(crate) payload: Bytes,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) key: Option<PartitionKey>,
    pub(crate) hops: u8,
}

/// Appends a dead letter to the first partition of a stream, which is created if missing; dead-letter streams have a
/// separate limit. Returns false if that limit is reached, and the record is lost. A quarantined stream continues to
/// grow, but is no longer trimmed to its limits.
pub(crate) fn append(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
    new: NewContent,
) -> Result<bool, StoreError> {
    let found = find(turn, namespace, name)?;
    let is_new = found.is_none();
    if is_new && !has_room_for_dead_letters(turn, namespace)? {
        return Ok(false);
    }
    let stream = match found {
        Some(found) => found,
        None => create(turn, namespace, name, StreamSettings::default())?,
    };
    Target { stream, is_new }.grow(turn, 0, new)?;
    Ok(true)
}

/// Appends one record to an existing partition; [`Target::finish`] must follow.
fn push(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedStream,
    partition: u32,
    new: NewContent,
) -> RecordId {
    let (number, stream) = target;
    let id = stream.last_id.following(turn.now_ms());
    let position = usize::try_from(partition).expect("a partition is a place in a list");
    let place = &mut stream.partitions[position];
    place.appended_count += 1;
    place.record_count += 1;
    place.front.get_or_insert(id);
    let content = RecordContent {
        payload: new.payload,
        headers: new.headers,
        key: new.key,
        position: place.appended_count,
        hops: new.hops,
    };
    stream.last_id = id;
    stream.record_count += 1;
    stream.bytes += content.size();
    let grown = (0, content.size());
    turn.note_size(&stream.namespace, QuotaDimension::StreamBytes, grown);
    turn.put::<Records>(&(*number, partition, id), content);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lies_where_it_always_lay() {
        let place = |key: &str, partitions| {
            let key = PartitionKey::new(key).expect("a key");
            partition_of(&key, NonZeroU32::new(partitions).expect("above zero"))
        };
        assert_eq!(["a", "b", "c", "order-7"].map(|key| place(key, 1)), [0; 4]);
        assert_eq!(
            ["a", "b", "c", "order-7"].map(|key| place(key, 8)),
            [7, 7, 3, 3]
        );
    }
}
