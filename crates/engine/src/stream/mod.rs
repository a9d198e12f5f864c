//! Streams: commands, and the retention that keeps streams within their limits (A30, A32).

mod append;
mod create;
mod delete;
mod fronts;
mod id;
mod quarantine;
mod retention;
mod trim;

pub use append::{AppendRecords, NewRecord, partition_of};
pub use create::CreateStream;
pub use delete::DeleteStream;
pub use id::{RecordId, RecordIdInvalid, StreamPosition};
pub use trim::{TrimStream, TrimTo};

pub(crate) use append::{Emission, NewContent, append, emit};
pub(crate) use quarantine::{quarantine, release_from_quarantine};
pub(crate) use retention::{fire_timer, hold_moved};

use crate::effect::Effect;
use crate::ids::{Namespace, StreamName, StreamNumber};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{StreamNames, StreamRecord, Streams};
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// A stream and its number.
pub(crate) type NumberedStream = (StreamNumber, StreamRecord);

/// The stream `name`, if it exists.
pub(crate) fn find(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<Option<NumberedStream>, StoreError> {
    let Some(number) = find_number(turn, namespace, name)? else {
        return Ok(None);
    };
    let stream = load(turn, number)?;
    Ok(Some((number, Arc::unwrap_or_clone(stream))))
}

/// The stream `name`, or a rejection.
pub(crate) fn require(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> TurnResult<NumberedStream> {
    let found = find(turn, namespace, name)?;
    Ok(found.ok_or_else(|| Rejection::StreamNotFound(name.clone()))?)
}

/// The number of the stream `name`, or a rejection.
pub(crate) fn require_number(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> TurnResult<StreamNumber> {
    let found = find_number(turn, namespace, name)?;
    Ok(found.ok_or_else(|| Rejection::StreamNotFound(name.clone()))?)
}

/// The stream `number`, which must exist: its name or one of its groups does.
pub(crate) fn load(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
) -> Result<Arc<StreamRecord>, StoreError> {
    let stream = turn.get::<Streams>(&number)?;
    Ok(stream.expect("a stream's name and groups are deleted before it"))
}

fn find_number(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<Option<StreamNumber>, StoreError> {
    let number = turn.get::<StreamNames>(&(namespace.clone(), name.clone()))?;
    Ok(number.map(|number| *number))
}

/// Stores a stream whose records changed, and updates the triggers that read it.
fn store(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    stream: StreamRecord,
) -> Result<(), StoreError> {
    // Every enabled trigger holds retention; most streams have no trigger.
    let is_watched = stream.holds_count > 0;
    let source = is_watched.then(|| (stream.namespace.clone(), stream.name.clone()));
    turn.put::<Streams>(&number, stream);
    match source {
        Some(source) => trigger::stream_changed(turn, &source),
        None => Ok(()),
    }
}

/// Wakes the readers that wait at the tail.
fn announce(turn: &mut Turn<'_, '_>, stream: &StreamRecord) {
    turn.effect(Effect::StreamChanged {
        namespace: stream.namespace.clone(),
        stream: stream.name.clone(),
    });
}
