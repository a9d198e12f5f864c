//! How long an action run waits for a worker (A2, W70).
//!
//! A step's action run ends with its run at the latest, or earlier if the step has a queue timeout. A stand-alone one
//! has no owner that would end it, and its namespace cannot be deleted while it is open (A41), so it always expires.
//! The time counts from the end of the delay, and starts again with each attempt. If a worker takes the action run in
//! the turn that makes it ready, no timer is set.

use super::loaded::LoadedTask;
use crate::tables::{TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Turn, TurnResult};

/// The action run waits for a worker from `from_ms` on, unless it does already. The record is yet to be put.
pub(super) fn begin(turn: &mut Turn<'_, '_>, task: &mut LoadedTask, from_ms: u64) {
    let Some(timeout_ms) = task.record.queue_timeout_ms else {
        return;
    };
    if task.record.wait_ends_at_ms.is_some() {
        return;
    }
    let due_ms = from_ms.saturating_add(timeout_ms);
    task.record.wait_ends_at_ms = Some(due_ms);
    turn.set_timer(timer_of(task, due_ms));
}

/// The action run waits for no worker from now on.
pub(super) fn end(turn: &mut Turn<'_, '_>, task: &mut LoadedTask) {
    // Not `take`, which copies a shared record even where it has no time.
    if let Some(due_ms) = task.record.wait_ends_at_ms {
        task.record.wait_ends_at_ms = None;
        turn.clear_timer(timer_of(task, due_ms));
    }
}

/// Gives the action run its timer back, if it waits (design rule 10). The record is yet to be put.
pub(super) fn restore(turn: &mut Turn<'_, '_>, task: &mut LoadedTask) -> TurnResult<()> {
    if let Some(due_ms) = task.record.wait_ends_at_ms {
        let due_ms = timer::restore(turn, timer_of(task, due_ms))?;
        task.record.wait_ends_at_ms = Some(due_ms);
    }
    Ok(())
}

fn timer_of(task: &LoadedTask, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::WaitExpiry,
        due_ms,
        subject: task.number.0,
        detail: u64::from(task.record.attempt),
    }
}
