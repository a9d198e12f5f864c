//! Continuations: deferred work of a turn or an entry that has used up its budget (design rule 13).
//!
//! The work waits in a table, and a timer that is due immediately resumes it in a later entry. However wide a run is,
//! no entry exceeds its budget, and no run fails for it.

use super::advance;
use super::step_timer::run_timer;
use crate::ids::RunNumber;
use crate::limits::CONTINUED_WORKS_MAX;
use crate::tables::{Continuation, PendingWorks, TimerKey, TimerKind, Work};
use crate::timer;
use crate::turn::{LoadedRun, Turn, TurnResult};

/// The position of the first work that is deferred.
const FIRST: u64 = 1 << 63;
/// Positions before the first deferred work that are left for what a resumed turn defers again: more than it has works.
const POSITIONS_BEFORE: u64 = 1 << 20;

/// Defers work on the run to a later entry, after the work that already waits there.
pub(super) fn defer(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, work: Work) {
    let continuation = continuation(turn, run);
    turn.put::<PendingWorks>(&(run.number, continuation.next), work);
    run.record.continuation = Some(Continuation {
        next: continuation.next + 1,
        ..continuation
    });
}

/// Defers work that was deferred before, or follows from such work: it stays before the work that waits behind it.
pub(super) fn defer_again(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, work: Work) {
    let continuation = continuation(turn, run);
    turn.put::<PendingWorks>(&(run.number, continuation.next_again), work);
    run.record.continuation = Some(Continuation {
        next_again: continuation.next_again + 1,
        ..continuation
    });
}

fn continuation(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> Continuation {
    run.record
        .continuation
        .unwrap_or_else(|| arm(turn, run.number, FIRST))
}

/// Handles the continuation's timer: the run does its deferred work, in bounded batches.
pub(crate) fn fire(turn: &mut Turn<'_, '_>, number: RunNumber) -> TurnResult<()> {
    // The timer of a quarantined run is restored when the run is released.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let Some(mut run) = turn.load_run_if_kept(number)? else {
        return Ok(());
    };
    let pending = turn.list::<PendingWorks>(&number, CONTINUED_WORKS_MAX + 1)?;
    let is_more_left = pending.len() > CONTINUED_WORKS_MAX;
    let first_left = pending.last().filter(|_| is_more_left);
    let first_left = first_left.map(|((_, position), _)| *position);
    let mut works = Vec::new();
    for (key, work) in pending.into_iter().take(CONTINUED_WORKS_MAX) {
        turn.delete::<PendingWorks>(&key);
        works.push((*work).clone());
    }
    let next = run
        .record
        .continuation
        .map_or(FIRST, |pending| pending.next);
    run.record.continuation = first_left.map(|first_left| Continuation {
        next,
        ..arm(turn, number, first_left)
    });
    turn.put_back_run(run);
    advance::resume(turn, number, works)
}

/// Restores the timer of a released run, which may have fired without effect.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TurnResult<()> {
    if let Some(continuation) = run.record.continuation {
        let due_ms = timer::restore(turn, timer_of(run.number, continuation.due_ms))?;
        if due_ms != continuation.due_ms {
            run.record.continuation = Some(Continuation {
                due_ms,
                ..continuation
            });
        }
    }
    Ok(())
}

/// Clears the continuation of a run that has no deferred work left.
pub(super) fn clear(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) {
    if let Some(continuation) = run.record.continuation.take() {
        turn.clear_timer(timer_of(run.number, continuation.due_ms));
    }
}

/// Sets the timer that resumes deferred work, the first of which has this position.
fn arm(turn: &mut Turn<'_, '_>, run: RunNumber, first: u64) -> Continuation {
    let due_ms = turn.now_ms();
    turn.set_timer(timer_of(run, due_ms));
    Continuation {
        due_ms,
        next: first,
        next_again: first - POSITIONS_BEFORE,
    }
}

fn timer_of(run: RunNumber, due_ms: u64) -> TimerKey {
    run_timer(TimerKind::Continuation, run, due_ms)
}
