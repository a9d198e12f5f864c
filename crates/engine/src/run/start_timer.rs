//! The timer of a run that begins later (W76).

use super::concurrency::{self, Acquired, Request};
use super::cursor;
use super::step_timer::run_timer;
use crate::definition::BuiltInTerminal;
use crate::ids::RunNumber;
use crate::message::cut;
use crate::store::StoreError;
use crate::tables::{Ending, EventKind, TimerKey, TimerKind, Work};
use crate::timer;
use crate::turn::{Abort, LoadedRun, Turn};

/// Sets the timer of a run that begins later.
pub(super) fn set(turn: &mut Turn<'_, '_>, run: &LoadedRun) {
    if let Some(due_ms) = run.record.timers.starts_at_ms {
        turn.set_timer(timer_of(run.number, due_ms));
    }
}

/// The time has come: the run asks for its concurrency keys (W84). Returns its first work.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<Option<Work>, StoreError> {
    run.record.timers.starts_at_ms = None;
    let request = Request {
        held_above: &[],
        may_use_existing: false,
        is_handed_over: run.record.chain.is_some(),
        conflict: None,
    };
    match concurrency::acquire(turn, run, &request) {
        // It begins when its locks are compiled.
        Ok(Acquired::Held) if run.record.awaits_locks() => Ok(None),
        Ok(Acquired::Held) => {
            run.note_run(EventKind::RunBegan);
            Ok(Some(cursor::first_work(run)))
        }
        Ok(Acquired::Queued(work)) => Ok(work),
        Ok(Acquired::Existing(_)) => panic!("a run that was created is not replaced"),
        Err(Abort::Rejected(rejection)) => {
            let (detail, code) = (rejection.to_string(), rejection.code().as_str());
            let ending = Ending::of_engine(BuiltInTerminal::Failed, Some(cut(&detail)), code);
            Ok(Some(Work::Finish(ending)))
        }
        Err(Abort::Store(error)) => Err(error),
    }
}

/// Clears the timer of a run that ends before it began.
pub(super) fn clear(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) {
    if let Some(due_ms) = run.record.timers.take(|timers| &mut timers.starts_at_ms) {
        turn.clear_timer(timer_of(run.number, due_ms));
    }
}

/// Restores the timer of a released run, which may have fired without effect.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Result<(), StoreError> {
    if let Some(due_ms) = run.record.timers.starts_at_ms {
        let due_ms = timer::restore(turn, timer_of(run.number, due_ms))?;
        run.record.timers.starts_at_ms = Some(due_ms);
    }
    Ok(())
}

fn timer_of(run: RunNumber, due_ms: u64) -> TimerKey {
    run_timer(TimerKind::RunStart, run, due_ms)
}
