//! Making a task ready: it goes to an offer of the same entry or into the queue (design rule 3).

use super::assign::{assign, free_offer};
use super::loaded::{LoadedTask, with_owner};
use super::{queue, wait};
use crate::due_time::DueTime;
use crate::effect::Effect;
use crate::ids::ActionRunNumber;
use crate::limits::{ACTION_RETRY_DELAY_MS_MAX, STEP_DELAY_MS_MAX};
use crate::tables::{ActionRunRecord, ActionRunStatus, ActionRuns, TimerKey, TimerKind};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Makes a pending action run's task ready, and writes its record; `run` is its workflow run.
pub(crate) fn make_ready(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    mut task: LoadedTask,
) -> TurnResult<()> {
    // A quarantined task does not wait for a worker (design rule 10).
    if task.is_quarantined(turn) {
        task.put(turn);
        return Ok(());
    }
    if let Some(position) = free_offer(turn, &task.record)? {
        return assign(turn, run, task, position);
    }
    queue::join(turn, &task)?;
    turn.effect(Effect::WakeWorkers {
        namespace: task.record.namespace.clone(),
        action: task.record.action.clone(),
    });
    let now_ms = turn.now_ms();
    wait::begin(turn, &mut task, now_ms);
    task.put(turn);
    Ok(())
}

/// Like [`make_ready`], after a delay in milliseconds.
pub(crate) fn make_ready_after(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    mut task: LoadedTask,
    delay_ms: u64,
) -> TurnResult<()> {
    if delay_ms == 0 {
        return make_ready(turn, run, task);
    }
    let due_ms = turn.now_ms().saturating_add(delay_ms);
    turn.set_timer(TimerKey {
        kind: TimerKind::TaskReady,
        due_ms,
        subject: task.number.0,
        detail: u64::from(task.record.attempt),
    });
    wait::begin(turn, &mut task, due_ms);
    task.put(turn);
    Ok(())
}

/// Makes a task ready whose delay has passed.
pub(crate) fn wake(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u64,
) -> TurnResult<()> {
    let Some(record) = turn.draft::<ActionRuns>(&number)? else {
        return Ok(());
    };
    if record.status != ActionRunStatus::Pending || u64::from(record.attempt) != attempt {
        return Ok(());
    }
    let owner = record.owner;
    // It already waits if it was released from quarantine early (design rule 10).
    let task = LoadedTask { number, record };
    if queue::is_waiting(turn, &task)? {
        return Ok(());
    }
    with_owner(turn, owner, |turn, run| make_ready(turn, run, task))
}

/// The earliest time of what follows the end of a task, in milliseconds, as its worker gave it (W74).
pub(super) fn not_before_ms(turn: &Turn<'_, '_>, not_before: Option<DueTime>) -> Option<u64> {
    let due = not_before?;
    let now_ms = turn.now_ms();
    Some(due.due_ms(now_ms, STEP_DELAY_MS_MAX).unwrap_or(now_ms))
}

/// The delay before the attempt that follows `attempt`, in milliseconds (A1).
pub(super) fn retry_delay_ms(record: &ActionRunRecord) -> u64 {
    let factor = 1_u64.checked_shl(record.attempt - 1).unwrap_or(u64::MAX);
    record
        .retry_delay_ms
        .saturating_mul(factor)
        .min(ACTION_RETRY_DELAY_MS_MAX)
}
