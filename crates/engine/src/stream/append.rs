//! Appending records (A30).

use super::create::{admit, open};
use super::set_aside::check_in_service;
use super::{Numbered, announce, find, retention, store};
use crate::bytes::Bytes;
use crate::codec::fingerprint;
use crate::command::Subject;
use crate::ids::{Namespace, PartitionKey, StreamName};
use crate::limits::{
    APPEND_BYTES_MAX, APPEND_RECORDS_MAX, HEADER_BYTES_MAX, HEADERS_MAX, PAYLOAD_BYTES_MAX,
};
use crate::rejection::{Rejection, check_bytes};
use crate::reply::RecordsAppended;
use crate::store::StoreError;
use crate::tables::{RecordContent, Records, StreamRecord, StreamSettings, record_size};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Appends records in their order. A stream that is missing is created with default settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendRecords {
    /// The stream.
    pub stream: StreamName,
    /// 1 to 1000 of them.
    pub records: Vec<NewRecord>,
}

/// A record as its producer sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRecord {
    /// At most 1 MiB.
    pub payload: Bytes,
    /// At most 64.
    pub headers: BTreeMap<String, String>,
    /// Places the record, and is kept with it.
    pub key: Option<PartitionKey>,
    /// Places the record whatever its key is.
    pub partition: Option<u32>,
}

impl AppendRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<RecordsAppended> {
        self.check()?;
        let found = find(turn, namespace, &self.stream)?;
        let is_new = found.is_none();
        let mut target = match found {
            Some(found) => {
                check_in_service(turn, found.0, &self.stream)?;
                found
            }
            None => {
                admit(turn, namespace)?;
                open(turn, (namespace, &self.stream), StreamSettings::default())?
            }
        };
        let before = target.1.last_id;
        for record in &self.records {
            record.check_fits(&target.1)?;
            let partition = record.place(&target.1)?;
            push(turn, &mut target, partition, record.content());
        }
        let first = before.following(turn.now_ms());
        finish(turn, target)?;
        if is_new {
            trigger::stream_appeared(turn, &(namespace.clone(), self.stream.clone()))?;
        }
        Ok(RecordsAppended { first })
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
    /// The record's size in bytes, unless a part is over its bound.
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

    /// Refuses a record that is larger than the whole stream may be: it would be swept unread.
    fn check_fits(&self, stream: &StreamRecord) -> Result<(), Rejection> {
        let bytes = record_size(&self.payload, &self.headers, self.key.as_ref());
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

    /// The partition: the one that is named, else that of the key, else 0.
    fn place(&self, stream: &StreamRecord) -> Result<u32, Rejection> {
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

    fn content(&self) -> NewContent {
        NewContent {
            payload: self.payload.clone(),
            headers: self.headers.clone(),
            key: self.key.clone(),
        }
    }
}

/// The partition of a key: FNV-1a in 64 bits over its bytes, modulo the number of partitions. Never
/// changed, since it decides where the records of a key lie.
#[must_use]
pub fn partition_of(key: &PartitionKey, partitions: NonZeroU32) -> u32 {
    let partition = fingerprint(key.as_str().as_bytes()) % u64::from(partitions.get());
    u32::try_from(partition).expect("a remainder of a u32")
}

/// What a record is made of, before it has a place.
pub(crate) struct NewContent {
    pub(crate) payload: Bytes,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) key: Option<PartitionKey>,
}

/// Appends one record of the engine's own to the first partition of a stream, which is created if it
/// is missing: no bound on the number of streams stands in the way.
///
/// A panic sets the stream aside, not who appends to it. One that is set aside grows on, but is no
/// longer brought back to its limits; should that fail as well, it is the work of who appends.
pub(crate) fn append(
    turn: &mut Turn<'_, '_>,
    (namespace, name): (&Namespace, &StreamName),
    new: NewContent,
) -> Result<(), StoreError> {
    let found = find(turn, namespace, name)?;
    let is_new = found.is_none();
    let mut target = match found {
        Some(found) => found,
        None => open(turn, (namespace, name), StreamSettings::default())?,
    };
    let number = target.0;
    let grow = |turn: &mut Turn<'_, '_>| {
        push(turn, &mut target, 0, new);
        finish(turn, target)
    };
    // One that this turn creates is gone with it, and cannot be set aside.
    if is_new || turn.is_stream_quarantined(number) {
        grow(turn)?;
    } else {
        turn.suspect_during(Subject::Stream(number), grow)?;
    }
    if is_new {
        trigger::stream_appeared(turn, &(namespace.clone(), name.clone()))?;
    }
    Ok(())
}

/// Appends one record to a partition that the stream has; [`finish`] must follow.
fn push(turn: &mut Turn<'_, '_>, (number, stream): &mut Numbered, partition: u32, new: NewContent) {
    let id = stream.last_id.following(turn.now_ms());
    let position = usize::try_from(partition).expect("a partition is a place in a list");
    let place = &mut stream.partitions[position];
    place.appended_count += 1;
    place.records_count += 1;
    place.front.get_or_insert(id);
    let content = RecordContent {
        payload: new.payload,
        headers: new.headers,
        key: new.key,
        position: place.appended_count,
    };
    stream.last_id = id;
    stream.records_count += 1;
    stream.bytes += content.size();
    turn.put::<Records>(&(*number, partition, id), content);
}

/// Stores a stream that has grown, brings it back to its limits, and tells its readers.
fn finish(turn: &mut Turn<'_, '_>, (number, mut stream): Numbered) -> Result<(), StoreError> {
    retention::sweep(turn, number, &mut stream)?;
    announce(turn, &stream);
    store(turn, number, stream)
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
            [4, 5, 2, 3]
        );
    }
}
