//! An action run ends: completed, failed, timed out or cancelled.

use super::lease::drop_lease;
use super::ready::{load, ready_key};
use super::token::TaskToken;
use crate::effect::Effect;
use crate::ids::{ActionRunNumber, OutcomeName};
use crate::json::Json;
use crate::run::{self, Settled, Work, advance, store_payload};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, Event, EventKind, Lease,
    PayloadOwner, PayloadRef, Payloads, Ready, Runs,
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

/// Ends the action run, and lets its workflow run go on.
pub(super) fn end(
    turn: &mut Turn<'_, '_>,
    (number, mut record): (ActionRunNumber, ActionRunRecord),
    ending: Ending,
) -> Outcome<()> {
    let output = ending.output.or_else(|| {
        let error = record.error.as_ref();
        error.map(|error| Json::error(&error.code, &error.message))
    });
    record.output = match output {
        Some(output) => Some(store_output(turn, number, &record, output)?),
        None => None,
    };
    record.status = ending.status;
    record.outcome = Some(ending.outcome.clone());
    record.completed_at_ms = Some(turn.now_ms());
    let (owner, output) = (record.owner, record.output);
    turn.put::<ActionRuns>(&number, record);
    let ActionRunOwner::Step { run, activation } = owner else {
        turn.effect(Effect::ActionRunEnded { action_run: number });
        return Ok(());
    };
    let outcome = ending.outcome;
    let step = run::load(turn, run)?
        .activation(activation)
        .map(|active| active.step);
    let kind = EventKind::ActionCompleted {
        action_run: number,
        outcome: outcome.clone(),
    };
    turn.event(run, Event { step, kind });
    let settled = Settled {
        outcome,
        output,
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

/// The output is stored once, with the workflow run if there is one.
fn store_output(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
    output: Json,
) -> Result<PayloadRef, StoreError> {
    match record.owner {
        ActionRunOwner::Step { run, .. } => {
            let mut owner = run::load(turn, run)?;
            let reference = store_payload(turn, run, &mut owner, output);
            turn.put::<Runs>(&run, owner);
            Ok(reference)
        }
        ActionRunOwner::Caller => {
            let reference = PayloadRef {
                owner: PayloadOwner::ActionRun(number),
                position: 1,
            };
            turn.put::<Payloads>(&reference, output);
            Ok(reference)
        }
    }
}

/// Gives an open action run up; its late completion is refused (W18).
pub(crate) fn cancel(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Result<(), StoreError> {
    let mut record = load(turn, number)?;
    if !record.status.is_open() {
        return Ok(());
    }
    match drop_lease(turn, number, &mut record)? {
        Some(lease) => revoke(turn, number, &record, &lease),
        None => turn.delete::<Ready>(&ready_key(number, &record)),
    }
    record.status = ActionRunStatus::Cancelled;
    record.completed_at_ms = Some(turn.now_ms());
    turn.put::<ActionRuns>(&number, record);
    Ok(())
}

/// Tells the worker that the task is no longer its own.
pub(super) fn revoke(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
    lease: &Lease,
) {
    turn.effect(Effect::RevokeTask {
        namespace: record.namespace.clone(),
        worker: lease.worker.clone(),
        token: TaskToken {
            action_run: number,
            attempt: record.attempt,
            secret: lease.secret,
        },
    });
}
