//! Creating a stream (A30).

use super::set_aside::check_in_service;
use super::{Numbered, announce, find};
use crate::ids::{Namespace, StreamName, StreamNumber};
use crate::limits::{PARTITIONS_MAX, STREAMS_MAX};
use crate::rejection::Rejection;
use crate::reply::StreamCreated;
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{PartitionRecord, StreamNames, StreamRecord, StreamSettings, Streams, Trim};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Creates a stream. One that is there with the same settings is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateStream {
    /// Its name.
    pub stream: StreamName,
    /// Fixed for its life.
    pub settings: StreamSettings,
}

impl CreateStream {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<StreamCreated> {
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
        admit(turn, namespace)?;
        let (number, stream) = open(turn, (namespace, &self.stream), self.settings)?;
        announce(turn, &stream);
        turn.put::<Streams>(&number, stream);
        trigger::stream_appeared(turn, &(namespace.clone(), self.stream.clone()))?;
        Ok(StreamCreated { is_new: true })
    }
}

/// Refuses a new stream in a namespace that has as many as it may.
pub(super) fn admit(turn: &Turn<'_, '_>, namespace: &Namespace) -> Outcome<()> {
    if turn.list::<StreamNames>(namespace, STREAMS_MAX)?.len() == STREAMS_MAX {
        return Err(Rejection::too_many("streams in a namespace", STREAMS_MAX).into());
    }
    Ok(())
}

/// Makes a stream, which the caller stores.
pub(super) fn open(
    turn: &mut Turn<'_, '_>,
    (namespace, name): (&Namespace, &StreamName),
    settings: StreamSettings,
) -> Result<Numbered, StoreError> {
    let number = StreamNumber(turn.next_number(|cluster| &mut cluster.streams_count)?);
    turn.put::<StreamNames>(&(namespace.clone(), name.clone()), number);
    let partitions = (0..settings.partitions.get()).map(|_| PartitionRecord::default());
    let stream = StreamRecord {
        namespace: namespace.clone(),
        name: name.clone(),
        settings,
        last_id: RecordId::START,
        records_count: 0,
        bytes: 0,
        partitions: partitions.collect(),
        trim: Trim::default(),
        lost_count: 0,
        groups_count: 0,
        holds_count: 0,
        is_deleted: false,
        sweep_due_ms: None,
        created_at_ms: turn.now_ms(),
    };
    Ok((number, stream))
}
