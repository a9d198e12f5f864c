//! An action run ends: completed, failed, timed out or cancelled.

use super::label_queue;
use super::lease::drop_lease;
use super::loaded::{Loaded, load};
use super::queue;
use super::report::drop_report;
use super::token::TaskToken;
use crate::dead_letter;
use crate::effect::Effect;
use crate::ids::{ActionRunNumber, OutcomeName};
use crate::json::Json;
use crate::limits::RETENTION_MS_DEFAULT;
use crate::run::{self, Settled, Work, advance};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunStatus, EventKind, Expiration, Expirations, Expiring, Lease,
    PayloadOwner, PayloadRef, Payloads,
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
    let output = match output {
        Some(output) => Some(store_output(turn, &task, output)?),
        None => None,
    };
    let outcome = ending.outcome;
    task.record.output = output;
    task.record.status = ending.status;
    task.record.outcome = Some(outcome.clone());
    task.record.completed_at_ms = Some(turn.now_ms());
    let (action_run, owner) = (task.number, task.record.owner);
    let error = task.record.error.clone();
    if is_dead_letter {
        dead_letter::bury(turn, action_run, &task.record)?;
    }
    task.put(turn);
    let ActionRunOwner::Step { run, activation } = owner else {
        turn.effect(Effect::ActionRunEnded { action_run });
        let expiration = Expiration {
            due_ms: turn.now_ms().saturating_add(RETENTION_MS_DEFAULT),
            subject: Expiring::ActionRun(action_run),
        };
        turn.put::<Expirations>(&expiration, ());
        turn.effect(Effect::ArmRetention {
            due_ms: expiration.due_ms,
        });
        return Ok(());
    };
    let reason = error.as_ref().map(|error| error.in_words(&outcome));
    let kind = EventKind::ActionCompleted {
        action_run,
        outcome: outcome.clone(),
        error,
    };
    note(turn, owner, kind)?;
    let settled = Settled {
        outcome,
        output,
        reason,
        is_retryable: ending.is_retryable,
    };
    advance(
        turn,
        Work::Settle {
            run,
            activation,
            settled,
        },
    )
}

/// Adds an event to the history of the workflow run that the action runs for, if there is one.
pub(super) fn note(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
    kind: EventKind,
) -> Result<(), StoreError> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(());
    };
    let run = run::load(turn, run)?;
    let active = run.record.activation(activation);
    let step = active.map(|active| active.step);
    run.note(turn, step, kind);
    Ok(())
}

/// The output is stored once, with the workflow run if there is one.
fn store_output(
    turn: &mut Turn<'_, '_>,
    task: &Loaded,
    output: Json,
) -> Result<PayloadRef, StoreError> {
    match task.record.owner {
        ActionRunOwner::Step { run, .. } => {
            let mut owner = run::load(turn, run)?;
            let reference = owner.store_payload(turn, output);
            owner.put(turn);
            Ok(reference)
        }
        ActionRunOwner::Caller => {
            let reference = PayloadRef {
                owner: PayloadOwner::ActionRun(task.number),
                position: 1,
            };
            turn.put::<Payloads>(&reference, output);
            Ok(reference)
        }
    }
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
    task.record.status = ActionRunStatus::Cancelled;
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
