//! Cancelling a run (W18).

use super::advance::advance;
use super::create::{check_open, find};
use crate::ids::{Namespace, RunId};
use crate::message::cut;
use crate::reply::Done;
use crate::tables::Work;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Cancels a run and its children; late results are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRun {
    /// The run.
    pub run_id: RunId,
    /// The reason, for people.
    pub reason: Option<String>,
}

impl CancelRun {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let run = find(turn, namespace, &self.run_id)?;
        check_open(&run)?;
        let reason = self.reason.as_deref().map(cut);
        let number = run.number;
        turn.put_back_run(run);
        advance(turn, number, Work::Cancel { reason })?;
        Ok(Done {})
    }
}
