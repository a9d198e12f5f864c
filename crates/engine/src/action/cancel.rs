//! Cancelling a stand-alone action run (A2).

use crate::ids::{ActionRunNumber, Namespace};
use crate::reply::Done;
use crate::task;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Cancels a stand-alone action run; a late result is rejected. An action run of a step ends only with its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelActionRun {
    /// The action run.
    pub action_run: ActionRunNumber,
    /// The reason, for people.
    pub reason: Option<String>,
}

impl CancelActionRun {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let reason = self.reason.as_deref();
        task::cancel_stand_alone(turn, namespace, self.action_run, reason)?;
        Ok(Done {})
    }
}
