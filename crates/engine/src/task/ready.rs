//! A task becomes ready: it goes to an offer of the same entry, or into the queue (design rule 3).

use super::assign::{assign, fitting_offer};
use crate::effect::Effect;
use crate::ids::ActionRunNumber;
use crate::limits::ACTION_RETRY_DELAY_MS_MAX;
use crate::store::StoreError;
use crate::tables::{
    ActionRunRecord, ActionRunStatus, ActionRuns, Ready, ReadyRecord, Table, TimerKey, TimerKind,
};
use crate::turn::{Outcome, Turn};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Makes a pending action run's task ready.
pub(crate) fn make_ready(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Outcome<()> {
    let record = load(turn, number)?;
    // A task that is set aside waits for nobody (design rule 10).
    if turn.is_task_quarantined(number, &record) {
        return Ok(());
    }
    // Older tasks of the action go first: an offer is taken at once only when none wait.
    let queue = (record.namespace.clone(), record.action.clone());
    let mut is_first = true;
    turn.visit_ready(&queue, |_, _| {
        is_first = false;
        ControlFlow::Break(())
    })?;
    if is_first && let Some(position) = fitting_offer(turn, &record)? {
        return assign(turn, number, position);
    }
    turn.put::<Ready>(
        &ready_key(number, &record),
        ReadyRecord {
            labels: record.labels.clone(),
        },
    );
    let (namespace, action) = (record.namespace.clone(), record.action.clone());
    turn.effect(Effect::WakeWorkers { namespace, action });
    Ok(())
}

/// Makes a pending action run's task ready after a delay in milliseconds.
pub(crate) fn make_ready_after(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    delay_ms: u64,
) -> Outcome<()> {
    if delay_ms == 0 {
        return make_ready(turn, number);
    }
    let record = load(turn, number)?;
    turn.set_timer(delay_timer(
        number,
        record.attempt,
        turn.now_ms().saturating_add(delay_ms),
    ));
    Ok(())
}

/// A delay has passed.
pub(crate) fn wake(turn: &mut Turn<'_, '_>, number: ActionRunNumber, attempt: u32) -> Outcome<()> {
    let Some(record) = turn.get::<ActionRuns>(&number)? else {
        return Ok(());
    };
    if record.status != ActionRunStatus::Pending || record.attempt != attempt {
        return Ok(());
    }
    make_ready(turn, number)
}

/// The key under which the task waits in the queue.
pub(super) fn ready_key(
    number: ActionRunNumber,
    record: &ActionRunRecord,
) -> <Ready as Table>::Key {
    let inverted_priority = u8::MAX - record.priority;
    (
        record.namespace.clone(),
        record.action.clone(),
        inverted_priority,
        number,
    )
}

/// The delay before the attempt that follows `attempt`, in milliseconds (A1).
pub(super) fn retry_delay_ms(record: &ActionRunRecord) -> u64 {
    let factor = 1_u64.checked_shl(record.attempt - 1).unwrap_or(u64::MAX);
    record
        .retry_delay_ms
        .saturating_mul(factor)
        .min(ACTION_RETRY_DELAY_MS_MAX)
}

fn delay_timer(number: ActionRunNumber, attempt: u32, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::TaskReady,
        due_ms,
        subject: number.0,
        detail: attempt,
    }
}

/// The action run `number`.
///
/// # Panics
/// When it is not there: only action runs that exist are referred to.
pub(super) fn load(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
) -> Result<ActionRunRecord, StoreError> {
    let record = turn.get::<ActionRuns>(&number)?;
    Ok(Arc::unwrap_or_clone(
        record.expect("an action run is kept as long as its run"),
    ))
}
