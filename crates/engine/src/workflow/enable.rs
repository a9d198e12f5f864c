//! Enabling and disabling a workflow (W42).

use crate::ids::{Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::schedule;
use crate::tables::{WorkflowRecord, Workflows};
use crate::trigger;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Enables or disables a workflow, its schedule and trigger included; open runs go on. Enabling also
/// ends a schedule's pause. Saying it twice changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetWorkflowEnabled {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Whether new starts and firings are allowed from now on.
    pub is_enabled: bool,
}

impl SetWorkflowEnabled {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Done> {
        let key = (namespace.clone(), self.workflow.clone());
        let workflow = turn
            .get::<Workflows>(&key)?
            .ok_or_else(|| Rejection::WorkflowNotFound(self.workflow.clone()))?;
        if workflow.is_enabled != self.is_enabled {
            let record = WorkflowRecord {
                is_enabled: self.is_enabled,
                latest: workflow.latest,
            };
            turn.put::<Workflows>(&key, record);
        }
        if self.is_enabled {
            schedule::enable(turn, &key)?;
        } else {
            schedule::disable(turn, &key)?;
        }
        trigger::set_enabled(turn, &key, self.is_enabled)?;
        Ok(Done {})
    }
}
