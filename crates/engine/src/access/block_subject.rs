//! Blocking subjects (X12).

use super::binding_subject::BindingSubject;
use super::{bindings, credentials};
use crate::reply::{Done, SubjectUnblocked};
use crate::tables::BlockRecord;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Refuses a subject, whatever bindings it has. In place of an earlier block of the subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSubject {
    /// The subject.
    pub subject: BindingSubject,
    /// When the block ends, in milliseconds; without an end if not given.
    pub ends_at_ms: Option<u64>,
}

impl BlockSubject {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let record = BlockRecord {
            ends_at_ms: self.ends_at_ms,
            blocked_at_ms: turn.now_ms(),
            blocked_by: turn.actor().into_author(),
        };
        bindings::put_block(turn, &self.subject, record)?;
        credentials::note_change(turn)?;
        Ok(Done {})
    }
}

/// Ends the block of a subject. Without effect on one that is not blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnblockSubject {
    /// The subject.
    pub subject: BindingSubject,
}

impl UnblockSubject {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<SubjectUnblocked> {
        if !bindings::delete_block(turn, &self.subject)? {
            return Ok(SubjectUnblocked { was_blocked: false });
        }
        credentials::note_change(turn)?;
        Ok(SubjectUnblocked { was_blocked: true })
    }
}
