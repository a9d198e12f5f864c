//! Trimming a stream by hand (A30).

use super::quarantine::check_in_service;
use super::{RecordId, require, retention, store};
use crate::ids::{Namespace, StreamName};
use crate::reply::Done;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes the oldest records of a stream, including those that a trigger has not consumed. They are removed in bounded
/// batches, the first one immediately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimStream {
    /// The stream.
    pub stream: StreamName,
    /// Which records are deleted.
    pub to: TrimTo,
}

/// Which records a trim deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrimTo {
    /// Those before this one.
    Before(RecordId),
    /// All but this many of the newest records.
    Newest(u64),
}

impl TrimStream {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let (number, mut stream) = require(turn, namespace, &self.stream)?;
        check_in_service(turn, number, &self.stream)?;
        match self.to {
            TrimTo::Before(id) => {
                let id = id.min(stream.last_id.next());
                stream.trim.before = stream.trim.before.max(id);
            }
            TrimTo::Newest(count) => {
                stream.trim.count = stream.record_count.saturating_sub(count);
            }
        }
        retention::sweep(turn, number, &mut stream)?;
        store(turn, number, stream)?;
        Ok(Done {})
    }
}
