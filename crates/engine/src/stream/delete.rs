//! Deleting a stream (A30).

use super::{announce, find, retention};
use crate::group;
use crate::ids::{Namespace, StreamName};
use crate::reply::Deleted;
use crate::tables::{StreamNames, Streams};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Deletes a stream and its consumer groups. Its name is free at once, its records are removed in
/// bounded pieces. Deleting one that is not there is no error; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteStream {
    /// The stream.
    pub stream: StreamName,
}

impl DeleteStream {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Deleted> {
        let Some((number, mut stream)) = find(turn, namespace, &self.stream)? else {
            return Ok(Deleted { is_found: false });
        };
        turn.delete::<StreamNames>(&(namespace.clone(), self.stream.clone()));
        announce(turn, &stream);
        group::delete_all(turn, number)?;
        trigger::stream_gone(turn, &(namespace.clone(), self.stream.clone()))?;
        (stream.groups_count, stream.holds_count) = (0, 0);
        stream.is_deleted = true;
        stream.trim.before = stream.last_id.next();
        if turn.is_stream_quarantined(number) {
            // To sweep it is what failed: its rows stay.
            turn.put::<Streams>(&number, stream);
        } else {
            retention::sweep_and_store(turn, number, stream)?;
        }
        Ok(Deleted { is_found: true })
    }
}
