//! The timer of a run with a timeout (W73).

use super::step_timer::run_timer;
use crate::ids::RunNumber;
use crate::store::StoreError;
use crate::tables::{TimerKey, TimerKind};
use crate::timer;
use crate::turn::{LoadedRun, Turn};

/// Begins to count, when a run enters its first step.
pub(super) fn begin(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) {
    let Some(timeout_ms) = run.definition.definition.timeout_ms else {
        return;
    };
    let due_ms = turn.now_ms().saturating_add(timeout_ms);
    turn.set_timer(timer_of(run.number, due_ms));
    run.record.timers.times_out_at_ms = Some(due_ms);
}

/// Clears the timer of a run that ends.
pub(super) fn clear(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) {
    if let Some(due_ms) = run.record.timers.take(|timers| &mut timers.times_out_at_ms) {
        turn.clear_timer(timer_of(run.number, due_ms));
    }
}

/// Restores the timer of a released run, which may have fired without effect.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    if let Some(due_ms) = run.record.timers.times_out_at_ms {
        let due_ms = timer::restore(turn, timer_of(run.number, due_ms))?;
        run.record.timers.times_out_at_ms = Some(due_ms);
    }
    Ok(())
}

fn timer_of(run: RunNumber, due_ms: u64) -> TimerKey {
    run_timer(TimerKind::RunTimeout, run, due_ms)
}
