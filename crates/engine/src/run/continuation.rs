//! Work that is put off because a turn or its entry has reached its budget (design rule 13).
//!
//! It waits in a table, and a timer that is due at once takes it up in a later entry: so however wide a run is, no
//! entry does more than its share, and no run fails for it.

use super::advance;
use super::loaded::{LoadedRun, load_if_kept, put_back};
use crate::ids::RunNumber;
use crate::limits::CONTINUED_WORKS_MAX;
use crate::tables::{Continuation, PendingWorks, TimerKey, TimerKind, Work};
use crate::timer;
use crate::turn::{Outcome, Turn};

/// Puts work on the run off to a later entry, behind what waits there already.
pub(super) fn put_off(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, work: Work) {
    let Continuation { due_ms, next } = match run.record.continuation {
        Some(continuation) => continuation,
        None => arm(turn, run.number),
    };
    turn.put::<PendingWorks>(&(run.number, next), work);
    let next = next + 1;
    run.record.continuation = Some(Continuation { due_ms, next });
}

/// The continuation's timer fires: the run goes on with what was put off, in bounded pieces.
pub(crate) fn fire(turn: &mut Turn<'_, '_>, number: RunNumber) -> Outcome<()> {
    // The timer of a quarantined run is restored when the run is released.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let Some(mut run) = load_if_kept(turn, number)? else {
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
    put_back(turn, run);
    advance::go_on(turn, number, works)
}

/// The run is released from quarantine: its timer may have fired in vain.
pub(super) fn restore(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> Outcome<()> {
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
