//! A worker reports an error (A5).

use super::end::{Ending, end};
use super::lease::{check, drop_lease};
use super::ready::{make_ready_after, retry_delay_ms};
use super::token::TaskToken;
use crate::ids::{ActionRunNumber, Namespace};
use crate::quarantine::cut;
use crate::reply::Reply;
use crate::run::{self, outcome_name};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, Event, EventKind, TaskError,
};
use crate::turn::{Outcome, Turn};
use crate::worker;
use serde::{Deserialize, Serialize};

/// What may follow a failure (A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailKind {
    /// The action's own retries, while there are any.
    Retry,
    /// No action retry; the step's own may follow.
    NoRetry,
    /// Neither an action retry nor a step retry.
    NonRetryable,
}

/// What the step or caller sees once no attempt is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureOutcome {
    /// `failure`: all that outside workers can say.
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
    /// The attempt.
    pub token: TaskToken,
    /// What may follow.
    pub kind: FailKind,
    /// The failure's code; plans classify by it (W35). Without one it is the outcome's name.
    pub code: Option<String>,
    /// What went wrong.
    pub message: String,
    /// What it amounts to.
    pub outcome: FailureOutcome,
}

impl FailTask {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let number = self.token.action_run;
        let (mut record, lease) = check(turn, namespace, &self.token)?;
        drop_lease(turn, number, &mut record)?;
        worker::count(turn, (namespace, &lease.worker), (&record.action, false))?;
        let code = self.code.as_deref().unwrap_or(self.outcome.name());
        let message = cut(&self.message);
        record.error = Some(TaskError {
            code: cut(code),
            message,
        });
        if self.kind == FailKind::Retry && record.attempt < record.attempts_max {
            try_again(turn, (number, record))?;
            return Ok(Reply::Done);
        }
        let ending = Ending {
            status: self.outcome.status(),
            outcome: outcome_name::of(self.outcome.name()),
            output: None,
            is_retryable: self.kind != FailKind::NonRetryable,
        };
        end(turn, (number, record), ending)?;
        Ok(Reply::Done)
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

fn try_again(
    turn: &mut Turn<'_, '_>,
    (number, mut record): (ActionRunNumber, ActionRunRecord),
) -> Outcome<()> {
    let delay_ms = retry_delay_ms(&record);
    record.attempt += 1;
    record.status = ActionRunStatus::Pending;
    note_retry(turn, (number, &record), delay_ms)?;
    turn.put::<ActionRuns>(&number, record);
    make_ready_after(turn, number, delay_ms)
}

/// Notes in the workflow run's history that another attempt follows, and why.
pub(super) fn note_retry(
    turn: &mut Turn<'_, '_>,
    (number, record): (ActionRunNumber, &ActionRunRecord),
    delay_ms: u64,
) -> Result<(), StoreError> {
    let ActionRunOwner::Step { run, activation } = record.owner else {
        return Ok(());
    };
    let step = run::load(turn, run)?
        .activation(activation)
        .map(|active| active.step);
    let due_ms = turn.now_ms().saturating_add(delay_ms);
    let message = record.error.as_ref().map(|error| error.message.clone());
    let kind = EventKind::ActionRetryScheduled {
        action_run: number,
        attempt: record.attempt,
        due_ms,
        message: message.unwrap_or_default(),
    };
    turn.event(run, Event { step, kind });
    Ok(())
}
