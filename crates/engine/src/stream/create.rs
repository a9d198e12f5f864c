//! Creating a stream (A30).

use super::quarantine::check_in_service;
use super::{NumberedStream, announce, find};
use crate::ids::{Namespace, StreamName, StreamNumber};
use crate::limits::{DEAD_LETTER_STREAMS_MAX, PARTITIONS_MAX, STREAMS_MAX};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::StreamCreated;
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{
    PartitionRecord, StreamCounts, StreamNames, StreamRecord, StreamSettings, Streams, Trim,
};
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Creates a stream. An existing stream with the same settings is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateStream {
    /// The name of the stream.
    pub stream: StreamName,
    /// The settings, which never change.
    pub settings: StreamSettings,
}

impl CreateStream {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<StreamCreated> {
        if self.settings.partitions.get() > PARTITIONS_MAX {
            return Err(Rejection::too_many("partitions", PARTITIONS_MAX as usize).into());
        }
        if let Some((number, stream)) = find(turn, namespace, &self.stream)? {
            check_in_service(turn, number, &self.stream)?;
            let differences = stream.settings.differences(&self.settings);
            if !differences.is_empty() {
                let stream = self.stream.clone();
                let refusal = Rejection::StreamExists {
                    stream,
                    differences,
                };
                return Err(refusal.into());
            }
            return Ok(StreamCreated { is_new: false });
        }
        quota::check(turn, namespace, &[(QuotaDimension::Streams, 1)])?;
        admit(turn, namespace)?;
        let (number, stream) = create(turn, namespace, &self.stream, self.settings)?;
        announce(turn, &stream);
        turn.put::<Streams>(&number, stream);
        trigger::stream_appeared(turn, &(namespace.clone(), self.stream.clone()))?;
        Ok(StreamCreated { is_new: true })
    }
}

/// Rejects a new stream if the namespace has reached its limit.
pub(super) fn admit(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<()> {
    if count(turn, namespace)? >= STREAMS_MAX as u64 {
        return Err(Rejection::too_many("streams in a namespace", STREAMS_MAX).into());
    }
    Ok(())
}

/// Whether a namespace may have another dead-letter stream.
pub(super) fn has_room_for_dead_letters(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
) -> Result<bool, StoreError> {
    let streams_max = STREAMS_MAX + DEAD_LETTER_STREAMS_MAX;
    Ok(count(turn, namespace)? < streams_max as u64)
}

/// The number of streams in a namespace.
fn count(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<u64, StoreError> {
    let count = turn.get::<StreamCounts>(namespace)?;
    Ok(count.map_or(0, |count| *count))
}

/// Frees the name of a deleted stream.
pub(super) fn forget_name(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<(), StoreError> {
    turn.delete::<StreamNames>(&(namespace.clone(), name.clone()));
    turn.note_use(namespace, QuotaDimension::Streams, -1);
    match count(turn, namespace)? {
        0 => panic!("every stream is counted"),
        1 => turn.delete::<StreamCounts>(namespace),
        streams_count => turn.put::<StreamCounts>(namespace, streams_count - 1),
    }
    Ok(())
}

/// Makes a stream record, which the caller stores.
pub(super) fn create(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
    settings: StreamSettings,
) -> Result<NumberedStream, StoreError> {
    let number = StreamNumber(turn.next_number(|cluster| &mut cluster.streams_count));
    turn.put::<StreamNames>(&(namespace.clone(), name.clone()), number);
    let streams_count = count(turn, namespace)? + 1;
    turn.put::<StreamCounts>(namespace, streams_count);
    turn.note_use(namespace, QuotaDimension::Streams, 1);
    let partitions = (0..settings.partitions.get()).map(|_| PartitionRecord::default());
    let stream = StreamRecord {
        namespace: namespace.clone(),
        name: name.clone(),
        settings,
        last_id: RecordId::START,
        record_count: 0,
        bytes: 0,
        partitions: partitions.collect(),
        trim: Trim::default(),
        lost_count: 0,
        group_count: 0,
        holds_count: 0,
        is_deleted: false,
        sweep_due_ms: None,
        created_at_ms: turn.now_ms(),
    };
    Ok((number, stream))
}
