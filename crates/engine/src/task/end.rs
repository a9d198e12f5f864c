//! An action run ends: completed, failed, timed out or cancelled.

use super::label_queue;
use super::loaded::{LoadedTask, expire_later};
use crate::dead_letter;
use crate::ids::{OutcomeName, RunId, StepName};
use crate::json::Json;
use crate::mostly_default::MostlyDefault;
use crate::run::{self, outcome_name};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunStatus, Awaited, EventKind, FailureCause, PayloadOwner, PayloadRef,
    Payloads, StepTimeout, StoredPayload, TargetResult, Work,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};

/// How an action run ends.
pub(super) struct Ending {
    /// Its last status.
    pub(super) status: ActionRunStatus,
    /// What its step or caller sees.
    pub(super) outcome: OutcomeName,
    /// What came back; without one the error is the output (W10a).
    pub(super) output: Option<Json>,
    /// False when a step must not try again (A5).
    pub(super) is_retryable: bool,
    /// The timeout of the step that ended it, if one did (W70).
    pub(super) timeout: Option<StepTimeout>,
    /// The earliest time of what follows, in milliseconds (W74).
    pub(super) not_before_ms: Option<u64>,
    /// The patch of the run's state (W66). An action run without a workflow run ignores it.
    pub(super) state_patch: Option<Json>,
}

impl Ending {
    /// That of a cancelled action run.
    fn of_cancelled() -> Self {
        Self {
            status: ActionRunStatus::Cancelled,
            outcome: outcome_name::of(outcome_name::CANCELLED),
            output: None,
            is_retryable: false,
            timeout: None,
            not_before_ms: None,
            state_patch: None,
        }
    }

    /// That of an action run whose last attempt failed without a report.
    pub(super) fn of_failed() -> Self {
        Self {
            status: ActionRunStatus::Failed,
            outcome: outcome_name::of(outcome_name::FAILURE),
            is_retryable: true,
            ..Self::of_cancelled()
        }
    }

    /// That of an action run whose time is over; `timeout` is the step's, if it has ended it.
    pub(super) fn of_timed_out(timeout: Option<StepTimeout>) -> Self {
        Self {
            status: ActionRunStatus::TimedOut,
            outcome: outcome_name::of(outcome_name::TIMEOUT),
            is_retryable: true,
            timeout,
            ..Self::of_cancelled()
        }
    }

    /// Whether the action run goes to the dead-letter queue: no attempt of it is left, and the worker
    /// did not say that another would be pointless (A5).
    fn is_dead_letter(&self) -> bool {
        match self.status {
            ActionRunStatus::Failed | ActionRunStatus::TimedOut => self.is_retryable,
            ActionRunStatus::Pending
            | ActionRunStatus::Running
            | ActionRunStatus::Completed
            | ActionRunStatus::Cancelled => false,
        }
    }
}

/// Ends the action run, so that its workflow run continues.
pub(super) fn end(turn: &mut Turn<'_, '_>, mut task: LoadedTask, ending: Ending) -> TurnResult<()> {
    let is_dead_letter = ending.is_dead_letter();
    let output = close(turn, &mut task, &ending)?;
    match task.record.owner {
        ActionRunOwner::Step { run, activation } => {
            let mut owner = turn.load_run(run)?;
            task.record.output = output.map(|output| owner.store_payload(turn, output));
            if is_dead_letter {
                let step = step_of(turn, &mut owner, activation)?;
                dead_letter::add(turn, task.number, &task.record, Some(step))?;
            }
            end_step(turn, owner, task, &ending)
        }
        ActionRunOwner::Caller => {
            if let Some(output) = output {
                let reference = PayloadRef {
                    owner: PayloadOwner::ActionRun(task.number),
                    position: 1,
                };
                turn.put::<Payloads>(&reference, StoredPayload::Text(output));
                task.record.output = Some(reference);
            }
            if is_dead_letter {
                dead_letter::add(turn, task.number, &task.record, None)?;
            }
            expire_later(turn, &task);
            task.put(turn);
            Ok(())
        }
    }
}

/// Notes how the action run ends; returns its output.
fn close(
    turn: &mut Turn<'_, '_>,
    task: &mut LoadedTask,
    ending: &Ending,
) -> Result<Option<Json>, StoreError> {
    label_queue::close(turn, &task.record)?;
    let output = ending.output.clone().or_else(|| {
        let error = task.record.error.as_ref();
        error.map(|error| Json::error(&error.code, &error.message))
    });
    let record = &mut *task.record;
    record.become_status(ending.status);
    record.outcome = Some(ending.outcome.clone());
    record.completed_at_ms = Some(turn.now_ms());
    Ok(output)
}

/// Ends a cancelled action run whose worker has answered without a result, or has lost the lease.
pub(super) fn end_cancelled(turn: &mut Turn<'_, '_>, task: LoadedTask) -> TurnResult<()> {
    end(turn, task, Ending::of_cancelled())
}

/// Like [`end_cancelled`], for a step of a run that the caller works on; returns what the step has to process.
pub(super) fn end_cancelled_in(
    turn: &mut Turn<'_, '_>,
    owner: &mut LoadedRun,
    mut task: LoadedTask,
) -> Result<TargetResult, StoreError> {
    let ending = Ending::of_cancelled();
    let output = close(turn, &mut task, &ending)?;
    task.record.output = output.map(|output| owner.store_payload(turn, output));
    conclude(turn, owner, task, &ending)
}

/// The run and the step that a task belongs to, by the names that people know.
fn step_of(
    turn: &mut Turn<'_, '_>,
    owner: &mut LoadedRun,
    activation: u64,
) -> TurnResult<(RunId, Option<StepName>)> {
    let run_id = owner.record.id.clone();
    if turn.is_quarantined(owner.number) {
        // Its steps are what a turn of it has failed on (design rule 10).
        return Ok((run_id, None));
    }
    let step = owner
        .activation(turn, activation)?
        .map(|active| active.step);
    let step = step.map(|step| owner.definition.definition.step(step).name.clone());
    Ok((run_id, step))
}

/// The step that waits for the action run is settled.
fn end_step(
    turn: &mut Turn<'_, '_>,
    mut owner: LoadedRun,
    task: LoadedTask,
    ending: &Ending,
) -> TurnResult<()> {
    let ActionRunOwner::Step { run, activation } = task.record.owner else {
        panic!("only a step's action run settles a step");
    };
    let target_result = conclude(turn, &mut owner, task, ending)?;
    turn.put_back_run(owner);
    let work = Work::FinishStep {
        activation,
        target_result,
    };
    run::advance_after_wait(turn, ActivationRef { run, activation }, work)
}

/// Writes the ended action run of a step, and notes its end; returns what the step has to process.
fn conclude(
    turn: &mut Turn<'_, '_>,
    owner: &mut LoadedRun,
    mut task: LoadedTask,
    ending: &Ending,
) -> Result<TargetResult, StoreError> {
    let outcome = ending.outcome.clone();
    let error = task.record.error.clone();
    let patch = ending.state_patch.clone();
    let patch = patch.map(|patch| Box::new(owner.store_payload(turn, patch)));
    let target_result = TargetResult {
        from: Awaited::Action(task.number),
        outcome: outcome.clone(),
        output: task.record.output,
        reason: error.as_ref().map(|error| error.describe(&outcome)),
        is_retryable: ending.is_retryable,
        cause: MostlyDefault::from(FailureCause {
            code: None,
            timeout: ending.timeout,
        }),
        not_before_ms: ending.not_before_ms,
        state_patch: patch,
    };
    let kind = EventKind::ActionCompleted {
        action_run: task.number,
        outcome,
        error,
    };
    task.record.last_event = owner.next_event();
    task.note(turn, Some(owner), kind)?;
    task.put(turn);
    Ok(target_result)
}
