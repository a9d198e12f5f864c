//! The signals that a run keeps: those that wait for a step (W19), and those that a block with a retry policy has
//! taken. A retry puts them back in their former order (W69).

use super::outcome::name;
use super::step_timer::end_waiting;
use crate::definition::CallRole;
use crate::ids::{ScopeNumber, SignalType};
use crate::limits::TAKEN_SIGNALS_PER_BATCH_MAX;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, AttemptSignals, EventKind, ScopePath, SignalRecord,
    SignalsWaiting, Table, TakenSignal, TakenSignals, TargetResult, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// A signal that waits for a step.
type StoredSignal = (<SignalsWaiting as Table>::Key, Arc<SignalRecord>);

/// A signal that a step takes.
pub(super) struct NewTakenSignal {
    /// The scope of the step.
    pub(super) scope: ScopeNumber,
    /// Its place among the signals of the run.
    pub(super) place: u64,
    pub(super) taken: TakenSignal,
}

/// Notes that a step takes a signal that was kept.
pub(super) fn take(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    new: NewTakenSignal,
) -> Result<(), StoreError> {
    let NewTakenSignal {
        scope,
        place,
        taken,
    } = new;
    let attempts = attempts(turn, run, scope)?;
    if attempts.is_empty() {
        run.record.signals.remove(taken.signal.bytes);
    }
    for attempt in attempts {
        turn.put::<TakenSignals>(&(run.number, attempt, place), taken.clone());
    }
    Ok(())
}

/// The attempts at blocks with a retry policy among a scope and its enclosing scopes, innermost first.
fn attempts(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> Result<Vec<ScopeNumber>, StoreError> {
    let record = run.definition.clone();
    let definition = &record.definition;
    let mut attempts = Vec::new();
    let mut number = scope;
    while let Some(open) = run.scope(turn, number)? {
        let opener = definition.block(open.block).opener;
        if opener.is_some_and(|opener| definition.retry(opener, CallRole::Target).is_some()) {
            attempts.push(number);
        }
        number = open.parent;
    }
    Ok(attempts)
}

/// An attempt at a block that ends, and the scope around it, which is still open.
#[derive(Clone, Copy)]
pub(super) struct EndedAttempt {
    pub(super) scope: ScopeNumber,
    pub(super) parent: ScopeNumber,
    /// Whether its signals are put back for the next attempt; otherwise they are discarded.
    pub(super) is_retried: bool,
}

/// The work that settles what an attempt has taken, if there may be anything. It must be done before that of an attempt
/// around it, and so be queued after that.
pub(super) fn settling(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    ended: EndedAttempt,
) -> Result<Option<Work>, StoreError> {
    if run.record.signals.kept_count == 0 {
        return Ok(None);
    }
    Ok(Some(Work::SettleSignals(AttemptSignals {
        scope: ended.scope,
        around: attempts(turn, run, ended.parent)?,
        is_retried: ended.is_retried,
    })))
}

/// Queues the work of [`settling`].
pub(super) fn settle_later(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: EndedAttempt,
) -> Result<(), StoreError> {
    if let Some(work) = settling(turn, run, ended)? {
        queue.push(run.number, work);
    }
    Ok(())
}

/// Settles a bounded number of the signals of an attempt, and queues the rest.
pub(super) fn settle(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    attempt: AttemptSignals,
) -> TurnResult<()> {
    let rows =
        turn.list::<TakenSignals>(&(run.number, attempt.scope), TAKEN_SIGNALS_PER_BATCH_MAX)?;
    let is_whole = rows.len() < TAKEN_SIGNALS_PER_BATCH_MAX;
    for ((_, scope, place), taken) in rows {
        turn.delete::<TakenSignals>(&(run.number, scope, place));
        if attempt.is_retried {
            // The attempts around this one no longer have it.
            for around in &attempt.around {
                turn.delete::<TakenSignals>(&(run.number, *around, place));
            }
            let key = (
                run.number,
                taken.to.clone(),
                taken.signal_type.clone(),
                place,
            );
            turn.put::<SignalsWaiting>(&key, taken.signal.clone());
        } else if attempt.around.is_empty() {
            run.record.signals.remove(taken.signal.bytes);
        }
    }
    if !is_whole {
        queue.push(run.number, Work::SettleSignals(attempt));
    } else if attempt.is_retried {
        match_waiting(turn, queue, run)?;
    }
    Ok(())
}

/// The oldest stored signal of the wanted type to this scope, else the oldest one to any, if there is one: it satisfies this
/// wait only (W19). A signal to this scope can end no other wait; one to any scope can.
pub(super) fn take_waiting(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    wanted: &SignalType,
) -> Result<Option<TargetResult>, StoreError> {
    if run.record.signals.kept_count == 0 {
        return Ok(None);
    }
    let mut stored = match run.scope_id(active.scope).path {
        path if path.0.is_empty() => None,
        path => oldest(turn, run, path, wanted)?,
    };
    if stored.is_none() {
        stored = oldest(turn, run, ScopePath::default(), wanted)?;
    }
    let Some((key, signal)) = stored else {
        return Ok(None);
    };
    turn.delete::<SignalsWaiting>(&key);
    let (_, to, signal_type, place) = key;
    let taken = TakenSignal {
        to,
        signal_type,
        signal: (*signal).clone(),
    };
    let scope = active.scope;
    let new = NewTakenSignal {
        scope,
        place,
        taken,
    };
    take(turn, run, new)?;
    let kind = EventKind::SignalMatched {
        signal_type: wanted.clone(),
    };
    run.note(active, kind);
    Ok(Some(TargetResult {
        output: Some(signal.payload),
        ..TargetResult::of_engine(name::of(name::SUCCESS))
    }))
}

/// The oldest stored signal of a type to a scope, or to any scope if the path is empty.
fn oldest(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    to: ScopePath,
    wanted: &SignalType,
) -> Result<Option<StoredSignal>, StoreError> {
    let queue = (run.number, to, wanted.clone());
    let stored = turn.list::<SignalsWaiting>(&queue, 1)?;
    Ok(stored.into_iter().next())
}

/// Gives stored signals to the steps that already wait for them, in the order in which these were entered.
fn match_waiting(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    for activation in run.active(turn)? {
        let Some(mut active) = run.take(turn, activation)? else {
            continue;
        };
        let mut matched = None;
        if let ActivationState::Signal(wait) = &active.state {
            matched = take_waiting(turn, run, &active, &wait.signal_type)?;
        }
        if matched.is_some() {
            end_waiting(turn, run, &mut active);
            run.end_wait(active.scope);
        }
        run.put_back(active);
        if let Some(target_result) = matched {
            let work = Work::FinishStep {
                activation,
                target_result,
            };
            queue.push(run.number, work);
        }
    }
    Ok(())
}
