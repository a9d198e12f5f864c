//! Completing a task with an outcome (A4, A4a).

use super::end::{Ending, end};
use super::lease::{check, drop_lease};
use super::ready::not_before_ms;
use super::token::TaskToken;
use super::usage;
use crate::due_time::DueTime;
use crate::ids::{Namespace, OutcomeName};
use crate::json::Json;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::ActionRunStatus;
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// Ends a task with an outcome. The outcome `failure` fails the step without an action retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteTask {
    /// The attempt's token.
    pub token: TaskToken,
    /// `success` or one of the action's own outcomes.
    pub outcome: OutcomeName,
    /// The output.
    pub output: Json,
    /// The earliest time of what follows; at most [`STEP_DELAY_MS_MAX`](crate::limits::STEP_DELAY_MS_MAX) ahead (W74).
    pub not_before: Option<DueTime>,
    /// The patch of the run's state (RFC 7396, W66).
    pub state_patch: Option<Json>,
    /// What it has used: an object of numbers (W87).
    pub usage: Option<Json>,
}

impl CompleteTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        if self.outcome.is_execution_level() {
            return Err(Rejection::OutcomeReserved(self.outcome.to_string()).into());
        }
        let mut task = check(turn, namespace, &self.token)?.task;
        usage::add(turn, task.record.owner, self.usage.as_ref())?;
        drop_lease(turn, &mut task, LeaseEnd::Completed)?;
        task.record.error = None;
        let ending = Ending {
            status: ActionRunStatus::Completed,
            outcome: self.outcome.clone(),
            output: Some(self.output.clone()),
            is_retryable: true,
            timeout: None,
            not_before_ms: not_before_ms(turn, self.not_before),
            state_patch: self.state_patch.clone(),
        };
        end(turn, task, ending)?;
        Ok(Done {})
    }
}
