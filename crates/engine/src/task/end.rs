//! An action run ends: completed, failed, timed out or cancelled.

use super::label_queue;
use super::lease::drop_lease;
use super::loaded::{Loaded, load};
use super::queue;
use super::report::drop_report;
use super::token::TaskToken;
use crate::dead_letter;
use crate::effect::Effect;
use crate::ids::{ActionRunNumber, OutcomeName, RunId, StepName};
use crate::json::Json;
use crate::limits::RETENTION_MS_DEFAULT;
use crate::run::{self, LoadedRun};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunStatus, Awaited, EventKind, Expiration, Expirations, Expiring, Lease,
    PayloadOwner, PayloadRef, Payloads, Settled, Work,
};
use crate::turn::{Outcome, Turn};

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
}

impl Ending {
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

/// Ends the action run, and lets its workflow run go on.
pub(super) fn end(turn: &mut Turn<'_, '_>, mut task: Loaded, ending: Ending) -> Outcome<()> {
    let is_dead_letter = ending.is_dead_letter();
    label_queue::close(turn, &task.record)?;
    let output = ending.output.or_else(|| {
        let error = task.record.error.as_ref();
        error.map(|error| Json::error(&error.code, &error.message))
    });
    task.record.become_status(ending.status);
    task.record.outcome = Some(ending.outcome.clone());
    task.record.completed_at_ms = Some(turn.now_ms());
    match task.record.owner {
        ActionRunOwner::Step { run, activation } => {
            let mut owner = run::load(turn, run)?;
            task.record.output = output.map(|output| owner.store_payload(turn, output));
            if is_dead_letter {
                let step = step_of(turn, &mut owner, activation)?;
                dead_letter::bury(turn, task.number, &task.record, Some(step))?;
            }
            end_step(turn, owner, task, ending.is_retryable)
        }
        ActionRunOwner::Caller => {
            if let Some(output) = output {
                let reference = PayloadRef {
                    owner: PayloadOwner::ActionRun(task.number),
                    position: 1,
                };
                turn.put::<Payloads>(&reference, output);
                task.record.output = Some(reference);
            }
            if is_dead_letter {
                dead_letter::bury(turn, task.number, &task.record, None)?;
            }
            expire_later(turn, &task);
            task.put(turn);
            Ok(())
        }
    }
}

/// The run and the step that a task belongs to, by the names that people know.
fn step_of(
    turn: &mut Turn<'_, '_>,
    owner: &mut LoadedRun,
    activation: u32,
) -> Outcome<(RunId, Option<StepName>)> {
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
    task: Loaded,
    is_retryable: bool,
) -> Outcome<()> {
    let ActionRunOwner::Step { run, activation } = task.record.owner else {
        panic!("only a step's action run settles a step");
    };
    let outcome = task.record.outcome.clone();
    let outcome = outcome.expect("an action run that has ended has an outcome");
    let error = task.record.error.clone();
    let settled = Settled {
        from: Awaited::Action(task.number),
        outcome: outcome.clone(),
        output: task.record.output,
        reason: error.as_ref().map(|error| error.in_words(&outcome)),
        is_retryable,
    };
    let kind = EventKind::ActionCompleted {
        action_run: task.number,
        outcome,
        error,
    };
    owner.note_of(turn, activation, kind)?;
    run::put_back(turn, owner);
    task.put(turn);
    let work = Work::Settle {
        activation,
        settled,
    };
    run::advance_after_wait(turn, run, work)
}

/// An action run outside any workflow is kept for a while, for those who ask how it ended.
fn expire_later(turn: &mut Turn<'_, '_>, task: &Loaded) {
    turn.effect(Effect::ActionRunEnded {
        action_run: task.number,
    });
    let expiration = Expiration {
        due_ms: turn.now_ms().saturating_add(RETENTION_MS_DEFAULT),
        subject: Expiring::ActionRun(task.number),
    };
    turn.put::<Expirations>(&expiration, ());
    turn.effect(Effect::ArmRetention {
        due_ms: expiration.due_ms,
    });
}

/// Gives an open action run up; its late completion is refused (W18).
pub(crate) fn cancel(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Result<(), StoreError> {
    let mut task = load(turn, number)?;
    if !task.record.status.is_open() {
        return Ok(());
    }
    match drop_lease(turn, &mut task)? {
        Some(lease) => revoke(turn, &task, &lease),
        None => queue::withdraw(turn, &task)?,
    }
    drop_report(turn, &mut task);
    label_queue::close(turn, &task.record)?;
    task.record.become_status(ActionRunStatus::Cancelled);
    task.record.completed_at_ms = Some(turn.now_ms());
    task.put(turn);
    Ok(())
}

/// Tells the worker that the task is no longer its own.
pub(super) fn revoke(turn: &mut Turn<'_, '_>, task: &Loaded, lease: &Lease) {
    turn.effect(Effect::RevokeTask {
        namespace: task.record.namespace.clone(),
        worker: lease.worker.clone(),
        token: TaskToken {
            action_run: task.number,
            attempt: task.record.attempt,
            secret: lease.secret,
        },
    });
}
