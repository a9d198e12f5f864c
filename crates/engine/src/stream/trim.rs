//! Trimming a stream by hand (A30).

use super::set_aside::check_in_service;
use super::{RecordId, require, retention, store};
use crate::ids::{Namespace, StreamName};
use crate::reply::Done;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Gives up the oldest records of a stream, also those that a trigger still wants. They are removed
/// in bounded pieces, the first one at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimStream {
    /// The stream.
    pub stream: StreamName,
    /// Which records go.
    pub to: TrimTo,
}

/// Which records a trim gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrimTo {
    /// Those before this one.
    Before(RecordId),
    /// All but the newest so many of now.
    Newest(u64),
}

impl TrimStream {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Done> {
        let (number, mut stream) = require(turn, namespace, &self.stream)?;
        check_in_service(turn, number, &self.stream)?;
        match self.to {
            TrimTo::Before(id) => {
                let id = id.min(stream.last_id.next());
                stream.trim.before = stream.trim.before.max(id);
            }
            TrimTo::Newest(count) => {
                stream.trim.count = stream.records_count.saturating_sub(count);
            }
        }
        retention::sweep(turn, number, &mut stream)?;
        store(turn, number, stream)?;
        Ok(Done {})
    }
}
