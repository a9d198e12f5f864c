//! Deleting a stream (A30).

use super::create::forget_name;
use super::{announce, find, retention};
use crate::group;
use crate::ids::{Namespace, StreamName};
use crate::reply::Deleted;
use crate::tables::Streams;
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes a stream and its consumer groups. Its name is free immediately; its records are deleted in bounded batches.
/// Deleting a missing stream succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteStream {
    /// The stream.
    pub stream: StreamName,
}

impl DeleteStream {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Deleted> {
        let Some((number, mut stream)) = find(turn, namespace, &self.stream)? else {
            return Ok(Deleted { is_found: false });
        };
        forget_name(turn, namespace, &self.stream)?;
        announce(turn, &stream);
        group::delete_all(turn, number)?;
        trigger::stream_gone(turn, &(namespace.clone(), self.stream.clone()))?;
        (stream.group_count, stream.holds_count) = (0, 0);
        stream.is_deleted = true;
        stream.trim.before = stream.last_id.next();
        if turn.is_stream_quarantined(number) {
            // The sweep is what panicked: the rows stay.
            turn.put::<Streams>(&number, stream);
        } else {
            retention::sweep_and_store(turn, number, stream)?;
        }
        Ok(Deleted { is_found: true })
    }
}
