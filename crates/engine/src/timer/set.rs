//! Setting timers.

use crate::store::StoreError;
use crate::tables::{TimerKey, Timers};
use crate::turn::Turn;

/// Brings forward a subject's single timer, unless it is already set for an earlier time. The timer is never postponed,
/// which would cost two writes per change; when it fires, the subject looks for what is due.
pub(crate) fn bring_forward(
    turn: &mut Turn<'_, '_>,
    set_for_ms: &mut Option<u64>,
    timer: TimerKey,
) {
    match *set_for_ms {
        Some(due_ms) if due_ms <= timer.due_ms => return,
        Some(due_ms) => turn.clear_timer(TimerKey { due_ms, ..timer }),
        None => {}
    }
    *set_for_ms = Some(timer.due_ms);
    turn.set_timer(timer);
}

/// Sets a timer again that may have fired without effect during quarantine (design rule 10), for now if its time has
/// passed. Returns when it is due, in milliseconds.
pub(crate) fn restore(turn: &mut Turn<'_, '_>, timer: TimerKey) -> Result<u64, StoreError> {
    if turn.get::<Timers>(&timer)?.is_some() {
        return Ok(timer.due_ms);
    }
    let due_ms = timer.due_ms.max(turn.now_ms());
    turn.set_timer(TimerKey { due_ms, ..timer });
    Ok(due_ms)
}

/// When the timer may fire, a new leader's grace included (A4).
pub(crate) fn effective_due_ms(timer: &TimerKey, grace_until_ms: u64) -> u64 {
    if timer.kind.is_graced() {
        timer.due_ms.max(grace_until_ms)
    } else {
        timer.due_ms
    }
}
