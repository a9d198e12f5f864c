//! Continuations: deferred work of a turn or an entry that has used up its budget (design rule 13).
//!
//! The work waits in a table, and a timer that is due immediately resumes it in a later entry. However wide a run is,
//! no entry exceeds its budget, and no run fails for it.

use super::advance;
use crate::ids::RunNumber;
use crate::limits::CONTINUED_WORKS_MAX;
use crate::tables::{Continuation, PendingWorks, TimerKey, TimerKind, Work};
use crate::timer;
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Defers work on the run to a later entry, after the work that already waits there.
pub(super) fn defer(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, work: Work) {
    let Continuation { due_ms, next } = match run.record.continuation {
        Some(continuation) => continuation,
        None => arm(turn, run.number),
    };
    turn.put::<PendingWorks>(&(run.number, next), work);
    let next = next + 1;
    run.record.continuation = Some(Continuation { due_ms, next });
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
    let mut works = Vec::new();
    for (key, work) in pending.into_iter().take(CONTINUED_WORKS_MAX) {
        turn.delete::<PendingWorks>(&key);
        works.push((*work).clone());
    }
    let next = run.record.continuation.map_or(0, |pending| pending.next);
    run.record.continuation = is_more_left.then(|| Continuation {
        next,
        ..arm(turn, number)
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

fn arm(turn: &mut Turn<'_, '_>, run: RunNumber) -> Continuation {
    let due_ms = turn.now_ms();
    turn.set_timer(timer_of(run, due_ms));
    Continuation { due_ms, next: 0 }
}

fn timer_of(run: RunNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::Continuation,
        due_ms,
        subject: run.0,
        detail: 0,
    }
}
