//! Purging dead letters (A6).

use super::selector::{DeadLetterSelector, PieceMax, remove, select};
use crate::ids::{ActionName, Namespace};
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::DeadLettersPurged;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Deletes dead letters of an action, in bounded batches; the reply says whether some remain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeDeadLetters {
    /// The action, which may have been deleted.
    pub action: ActionName,
    /// The dead letters to purge.
    pub dead_letters: DeadLetterSelector,
}

/// The most dead letters that one command deletes; each has three rows.
const PIECE_MAX: PieceMax = PieceMax {
    count: SWEEP_ROWS_MAX / 3,
    bytes: u64::MAX,
};

impl PurgeDeadLetters {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<DeadLettersPurged> {
        let queue = (namespace.clone(), self.action.clone());
        let (places, has_more) = select(turn, &queue, self.dead_letters, PIECE_MAX)?;
        remove(turn, &queue, &places)?;
        Ok(DeadLettersPurged {
            count: u32::try_from(places.len()).expect("a purge is bounded"),
            has_more,
        })
    }
}
