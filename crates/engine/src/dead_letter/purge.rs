//! Throwing dead letters away (A6).

use super::choice::{LetterChoice, choose, remove};
use crate::ids::{ActionName, Namespace};
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::DeadLettersPurged;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Throws away dead letters of an action, in bounded pieces: the reply says whether there are more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeDeadLetters {
    /// The action; it need not be registered any more.
    pub action: ActionName,
    /// Which.
    pub letters: LetterChoice,
}

/// Letters that one command throws away, at most; each is two rows.
const LETTERS_MAX: usize = SWEEP_ROWS_MAX / 2;

impl PurgeDeadLetters {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<DeadLettersPurged> {
        let queue = (namespace.clone(), self.action.clone());
        let (numbers, has_more) = choose(turn, &queue, self.letters, LETTERS_MAX)?;
        remove(turn, &queue, &numbers)?;
        Ok(DeadLettersPurged {
            count: u32::try_from(numbers.len()).expect("a purge is bounded"),
            has_more,
        })
    }
}
