//! Commands on streams, and what keeps them within their limits (A30, A32).

mod append;
mod create;
mod delete;
mod id;
mod retention;
mod set_aside;
mod trim;

pub use append::{AppendRecords, NewRecord, partition_of};
pub use create::CreateStream;
pub use delete::DeleteStream;
pub use id::{RecordId, RecordIdInvalid, StreamPosition};
pub use trim::{TrimStream, TrimTo};

pub(crate) use append::{NewContent, append};
pub(crate) use retention::{fall_due, hold_moved};
pub(crate) use set_aside::{set_aside, take_up};

use crate::effect::Effect;
use crate::ids::{Namespace, StreamName, StreamNumber};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{StreamNames, StreamRecord, Streams};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use std::sync::Arc;

/// A stream and its number.
pub(crate) type Numbered = (StreamNumber, StreamRecord);

/// The stream `name`, if there is one.
pub(crate) fn find(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<Option<Numbered>, StoreError> {
    let Some(number) = find_number(turn, namespace, name)? else {
        return Ok(None);
    };
    let stream = load(turn, number)?;
    Ok(Some((number, Arc::unwrap_or_clone(stream))))
}

/// The stream `name`, or a refusal.
pub(crate) fn require(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Outcome<Numbered> {
    let found = find(turn, namespace, name)?;
    Ok(found.ok_or_else(|| Rejection::StreamNotFound(name.clone()))?)
}

/// The number of the stream `name`, or a refusal.
pub(crate) fn require_number(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &StreamName,
) -> Outcome<StreamNumber> {
    let found = find_number(turn, namespace, name)?;
    Ok(found.ok_or_else(|| Rejection::StreamNotFound(name.clone()))?)
}

/// The stream `number`, which is there: its name or a group of it is.
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

/// Stores a stream whose records came or went, and brings the triggers in step that wait for them.
fn store(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    stream: StreamRecord,
) -> Result<(), StoreError> {
    // Each trigger that fires holds retention: most streams have none.
    let is_watched = stream.holds_count > 0;
    let source = is_watched.then(|| (stream.namespace.clone(), stream.name.clone()));
    turn.put::<Streams>(&number, stream);
    match source {
        Some(source) => trigger::stream_changed(turn, &source),
        None => Ok(()),
    }
}

/// Tells those who wait at the stream to look again.
fn announce(turn: &mut Turn<'_, '_>, stream: &StreamRecord) {
    turn.effect(Effect::StreamChanged {
        namespace: stream.namespace.clone(),
        stream: stream.name.clone(),
    });
}
