//! Failing a task with an error (A5).

use super::end::{Ending, end, end_cancelled};
use super::lease::{check, drop_lease};
use super::loaded::{LoadedTask, with_owner};
use super::ready::{make_ready_after, not_before_ms, retry_delay_ms};
use super::token::TaskToken;
use super::usage;
use crate::due_time::DueTime;
use crate::ids::Namespace;
use crate::json::Json;
use crate::message::cut;
use crate::reply::Done;
use crate::run::{self, outcome_name};
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, ActionRunStatus, EventKind, TaskError};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};
use crate::worker::LeaseEnd;
use serde::{Deserialize, Serialize};

/// What follows a failure (A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailKind {
    /// The action's own retries, while any remain.
    Retry,
    /// No action retry; a step retry may follow.
    NoRetry,
    /// Neither an action retry nor a step retry.
    NonRetryable,
}

/// The outcome for the step or caller once no attempt remains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureOutcome {
    /// `failure`: the only choice of workers outside the cluster.
    #[default]
    Failure,
    /// `timeout`: an embedded worker stopped the action at its limit (A7).
    Timeout,
    /// `execution_failure`: the action's module is missing or broken (A7).
    ExecutionFailure,
}

/// Ends a task with an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailTask {
    /// The attempt's token.
    pub token: TaskToken,
    /// What follows the failure.
    pub kind: FailKind,
    /// The failure's code, by which plans classify errors (W35); defaults to the outcome's name.
    pub code: Option<String>,
    /// The error message.
    pub message: String,
    /// The outcome for the step or caller.
    pub outcome: FailureOutcome,
    /// The earliest time of what follows; at most [`STEP_DELAY_MS_MAX`](crate::limits::STEP_DELAY_MS_MAX) ahead (W74).
    pub not_before: Option<DueTime>,
    /// The patch of the run's state (RFC 7396, W66).
    pub state_patch: Option<Json>,
    /// What it has used: an object of numbers (W87).
    pub usage: Option<Json>,
}

impl FailTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let mut task = check(turn, namespace, &self.token)?.task;
        usage::add(turn, task.record.owner, self.usage.as_ref())?;
        let code = self.code.as_deref().unwrap_or(self.outcome.name());
        task.record.error = Some(TaskError {
            code: cut(code),
            message: cut(&self.message),
        });
        if task.record.is_cancelling {
            drop_lease(turn, &mut task, LeaseEnd::Withdrawn)?;
            end_cancelled(turn, task)?;
            return Ok(Done {});
        }
        drop_lease(turn, &mut task, LeaseEnd::Failed)?;
        let not_before_ms = not_before_ms(turn, self.not_before);
        if self.kind == FailKind::Retry && task.record.attempt < task.record.attempts_max {
            self.keep_state(turn, &mut task)?;
            try_again(turn, task, not_before_ms)?;
            return Ok(Done {});
        }
        let ending = Ending {
            status: self.outcome.status(),
            outcome: outcome_name::of(self.outcome.name()),
            output: None,
            is_retryable: self.kind != FailKind::NonRetryable,
            timeout: None,
            not_before_ms,
            state_patch: self.state_patch.clone(),
        };
        end(turn, task, ending)?;
        Ok(Done {})
    }

    /// Writes the patch of the state before the action is tried again with the input that follows from it, if the step keeps
    /// it. If it cannot be written, that is why the attempt has failed.
    fn keep_state(&self, turn: &mut Turn<'_, '_>, task: &mut LoadedTask) -> TurnResult<()> {
        let (Some(patch), ActionRunOwner::Step { run, activation }) =
            (&self.state_patch, task.record.owner)
        else {
            return Ok(());
        };
        let at = ActivationRef { run, activation };
        match run::keep_state(turn, at, patch)? {
            Ok(None) => {}
            Ok(Some(input)) => task.record.input = input,
            Err(error) => task.record.error = Some(error),
        }
        Ok(())
    }
}

impl FailureOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Failure => outcome_name::FAILURE,
            Self::Timeout => outcome_name::TIMEOUT,
            Self::ExecutionFailure => outcome_name::EXECUTION_FAILURE,
        }
    }

    fn status(self) -> ActionRunStatus {
        match self {
            Self::Failure | Self::ExecutionFailure => ActionRunStatus::Failed,
            Self::Timeout => ActionRunStatus::TimedOut,
        }
    }
}

/// Makes another attempt: at `not_before_ms` if the worker gave a time, otherwise after the delay of the action.
pub(super) fn try_again(
    turn: &mut Turn<'_, '_>,
    mut task: LoadedTask,
    not_before_ms: Option<u64>,
) -> TurnResult<()> {
    let delay_ms = match not_before_ms {
        Some(due_ms) => due_ms.saturating_sub(turn.now_ms()),
        None => retry_delay_ms(&task.record),
    };
    task.record.attempt += 1;
    task.record.become_status(ActionRunStatus::Pending);
    with_owner(turn, task.record.owner, |turn, mut run| {
        note_retry(turn, run.as_deref_mut(), &task, delay_ms)?;
        make_ready_after(turn, run, task, delay_ms)
    })
}

/// Records in the workflow run's history that another attempt follows, and why.
pub(super) fn note_retry(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    task: &LoadedTask,
    delay_ms: u64,
) -> Result<(), StoreError> {
    let error = task.record.error.as_ref();
    let kind = EventKind::ActionRetryScheduled {
        action_run: task.number,
        attempt: task.record.attempt,
        due_ms: turn.now_ms().saturating_add(delay_ms),
        message: error.map_or_else(String::new, |error| error.message.clone()),
    };
    task.note(turn, run, kind)
}
