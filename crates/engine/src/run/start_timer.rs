//! The timer of a run that begins later (W76).

use super::step_timer::run_timer;
use crate::ids::RunNumber;
use crate::store::StoreError;
use crate::tables::{EventKind, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{LoadedRun, Turn};

/// Sets the timer of a run that begins later.
pub(super) fn set(turn: &mut Turn<'_, '_>, run: &LoadedRun) {
    if let Some(due_ms) = run.record.starts_at_ms {
        turn.set_timer(timer_of(run.number, due_ms));
    }
}

/// The time has come.
pub(super) fn begin(run: &mut LoadedRun) {
    run.record.starts_at_ms = None;
    run.note_run(EventKind::RunBegan);
}

/// Clears the timer of a run that ends before it began.
pub(super) fn clear(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) {
    if let Some(due_ms) = run.record.starts_at_ms.take() {
        turn.clear_timer(timer_of(run.number, due_ms));
    }
}

/// Restores the timer of a released run, which may have fired without effect.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    if let Some(due_ms) = run.record.starts_at_ms {
        let due_ms = timer::restore(turn, timer_of(run.number, due_ms))?;
        run.record.starts_at_ms = Some(due_ms);
    }
    Ok(())
}

fn timer_of(run: RunNumber, due_ms: u64) -> TimerKey {
    run_timer(TimerKind::RunStart, run, due_ms)
}
