//! Enabling and disabling a workflow (W42).

use crate::ids::{Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::schedule;
use crate::tables::{WorkflowRecord, Workflows};
use crate::trigger;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Enables or disables a workflow with its schedule and trigger; open runs continue. Enabling also resumes a paused
/// schedule. Idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetWorkflowEnabled {
    /// The workflow.
    pub workflow: WorkflowName,
    /// Whether new starts and firings are allowed from now on.
    pub is_enabled: bool,
}

impl SetWorkflowEnabled {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.workflow.clone());
        let workflow = turn
            .get::<Workflows>(&key)?
            .ok_or_else(|| Rejection::WorkflowNotFound(self.workflow.clone()))?;
        if workflow.is_enabled != self.is_enabled {
            let record = WorkflowRecord {
                is_enabled: self.is_enabled,
                ..(*workflow).clone()
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
