//! Cancelling a scope or everything in a run: nothing begins there afterwards, and it ends when everything in it has ended
//! (W54).

use super::branches::EndedScope;
use super::cursor::{self, PendingWork};
use super::finish_step::attempt_of_block;
use super::kept_signals::{self, EndedAttempt};
use super::outcome::name;
use super::stopping::{self, Stopped};
use super::{compensation, on_cancel, resumable, scope, timeout_timers};
use crate::ids::{RunNumber, ScopeNumber};
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, BranchResult, EventKind, FailureCause, ScopeRecord, UndoOwner, Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// Cancels a scope. When everything in it has ended, its end is handed to the step that opened it. A definition bounds how
/// many steps this stops (E520).
pub(super) fn cancel(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    number: ScopeNumber,
) -> TurnResult<()> {
    let scope = run.scope(turn, number)?.cloned();
    // One around it may have been cancelled meanwhile.
    let Some(scope) = scope.filter(|scope| scope.cancelling.is_none()) else {
        return Ok(());
    };
    let undone_for = (scope.parent, UndoOwner::Step(scope.opener));
    let below = below(turn, run, scope)?;
    let area = Area {
        scope: number,
        undone_for,
        scopes: below.iter().map(|scope| scope.id.number).collect(),
    };
    let works = area.stop(turn, queue, run)?;
    if *waiting_count(run, number) == 0 {
        settle_scope(turn, queue, run, number)?;
    }
    push_in_order(queue, works);
    Ok(())
}

/// Cancels everything that is open in a run whose end is decided, but for compensations: these are made to their end.
/// Returns the work that follows; the end of the run waits until the last cancelled step has ended.
pub(super) fn cancel_all(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<Works> {
    if run.record.scopes.opened_count > 0 {
        run.look_up_scopes(turn)?;
    }
    let area = Area {
        scope: ScopeNumber::ROOT,
        undone_for: (ScopeNumber::ROOT, UndoOwner::Run),
        scopes: run.open_scopes().map(|scope| scope.id.number).collect(),
    };
    area.stop(turn, queue, run)
}

/// Work in the order in which it is done.
pub(super) type Works = Vec<(RunNumber, Work)>;

/// Queues work, the first to be done next.
pub(super) fn push_in_order(queue: &mut WorkQueue, works: Works) {
    for (run, work) in works.into_iter().rev() {
        queue.push(run, work);
    }
}

/// What is cancelled together.
struct Area {
    /// The outermost scope; [`ScopeNumber::ROOT`] for the run.
    scope: ScopeNumber,
    /// Where what is being undone is continued, and for what.
    undone_for: (ScopeNumber, UndoOwner),
    /// The open scopes, the outermost one first; without that of the run itself.
    scopes: Vec<ScopeNumber>,
}

impl Area {
    fn contains(&self, active: &Activation) -> bool {
        self.scope == ScopeNumber::ROOT || self.scopes.contains(&active.scope)
    }

    /// Stops the steps in it, the newest first; returns the work that follows.
    fn stop(
        &self,
        turn: &mut Turn<'_, '_>,
        queue: &mut WorkQueue,
        run: &mut LoadedRun,
    ) -> TurnResult<Works> {
        for number in &self.scopes {
            let scope = run.scope_mut(*number);
            scope.expect("the scope is open").cancelling = Some(0);
        }
        let pending = PendingWork::of(turn, queue, run)?;
        cursor::note_scopes(turn, run, &self.scopes, &pending)?;
        let mut works = Works::new();
        for activation in run.active(turn)?.into_iter().rev() {
            let Some(mut active) = run.take(turn, activation)? else {
                continue;
            };
            if !self.contains(&active) {
                run.put_back(active);
            } else if let Some(undone) = &mut active.undone {
                // What is undone already is undone to its end.
                let (scope, owner) = self.undone_for;
                undone.owner = owner;
                active.scope = scope;
                run.put_back(active);
            } else if active.call.is_on_cancel() || active.is_stopping() {
                self.take_over(turn, run, active);
            } else if active.state.is_executing() && pending.has_result(active.number) {
                // Its result is there, but was not processed yet.
                timeout_timers::stop(turn, run.at(&active), &mut active);
                active.ending.cancelled_with = Some(self.scope);
                *waiting_count(run, self.scope) += 1;
                run.put_back(active);
            } else {
                active.ending.cancelled_with = Some(self.scope);
                works.extend(stop_step(turn, queue, run, active)?);
            }
        }
        Ok(works)
    }

    /// Takes over a step that stops already, or the handler of one that was cancelled.
    fn take_over(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        mut active: Draft<Activation>,
    ) {
        active.ending.cancelled_with = Some(self.scope);
        if !active.call.is_on_cancel() {
            active.ending.timeout_result = None;
            timeout_timers::stop(turn, run.at(&active), &mut active);
        }
        if !active.state.opens_scopes() {
            *waiting_count(run, self.scope) += 1;
        }
        run.put_back(active);
    }
}

/// Stops a step of a scope that is cancelled.
fn stop_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<Works> {
    let mut works = Works::new();
    timeout_timers::stop(turn, run.at(&active), &mut active);
    if active.state.opens_scopes() {
        // It ends with its scopes.
        let settling = settling_of_ended(turn, run, &active)?;
        works.extend(settling.map(|work| (run.number, work)));
        run.put_back(active);
        return Ok(works);
    }
    let stopped = stopping::stop(turn, run, &active)?;
    if let Stopped::ChildAbandoned(child) | Stopped::AwaitsChild(child) = stopped {
        let step = &run.definition.definition.step(active.step).name;
        let reason = format!("step \"{step}\" of parent {} was cancelled", run.record.id);
        let reason = Some(reason);
        works.push((child, Work::Cancel { reason }));
    }
    match stopped {
        Stopped::Ended | Stopped::ChildAbandoned(_) => {
            compensation::enter_cancelled(turn, run, &active)?;
            if let Some(handler) = leave(turn, run, &active)? {
                *waiting_count(run, scope_of(&active)) += 1;
                queue.push(run.number, handler);
            }
        }
        Stopped::AwaitsWorker | Stopped::AwaitsChild(_) => {
            *waiting_count(run, scope_of(&active)) += 1;
            run.put_back(active);
        }
    }
    Ok(works)
}

/// Ends a cancelled step: what it waited for has ended.
pub(super) fn end_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    active: Draft<Activation>,
) -> TurnResult<()> {
    match leave(turn, run, &active)? {
        Some(handler) => {
            queue.push(run.number, handler);
            Ok(())
        }
        None => note_end(turn, queue, run, scope_of(&active)),
    }
}

/// Leaves a cancelled step; returns the work that begins its handler, if it has one.
fn leave(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> Result<Option<Work>, StoreError> {
    run.note(active, EventKind::StepCancelled);
    resumable::keep_step(turn, run, active)?;
    run.leave(active);
    run.record.left_count += 1;
    Ok(on_cancel::activate(turn, run, active))
}

/// Notes that a step or its handler has ended for which the end of a cancelled scope has waited.
pub(super) fn note_end(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    scope: ScopeNumber,
) -> TurnResult<()> {
    run.scope(turn, scope)?;
    // It may have ended meanwhile, or a scope around it was cancelled, which does not wait for what has ended.
    let waiting = find_waiting_count(run, scope).filter(|count| **count > 0);
    let Some(waiting) = waiting else {
        return Ok(());
    };
    *waiting -= 1;
    if *waiting > 0 {
        return Ok(());
    }
    match scope {
        ScopeNumber::ROOT => {
            settle_all(turn, queue, run)?;
            queue.push(run.number, Work::NextPhase);
            Ok(())
        }
        scope => settle_scope(turn, queue, run, scope),
    }
}

/// The cancelled scope with which a step ends.
fn scope_of(active: &Activation) -> ScopeNumber {
    active
        .ending
        .cancelled_with
        .expect("the step was cancelled")
}

/// How many steps the end of a cancelled scope waits for.
fn waiting_count(run: &mut LoadedRun, scope: ScopeNumber) -> &mut u32 {
    find_waiting_count(run, scope).expect("the scope is cancelled")
}

fn find_waiting_count(run: &mut LoadedRun, scope: ScopeNumber) -> Option<&mut u32> {
    match scope {
        ScopeNumber::ROOT => {
            let end = run.record.fixed_end.as_mut()?;
            Some(&mut end.cancelling_count)
        }
        scope => run.scope_mut(scope)?.cancelling.as_mut(),
    }
}

/// Ends a cancelled scope in which everything has ended.
fn settle_scope(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    number: ScopeNumber,
) -> TurnResult<()> {
    let scope = run.scope(turn, number)?.cloned();
    let scope = scope.expect("a cancelled scope ends once");
    let below = below(turn, run, scope.clone())?;
    let works = close(turn, run, (number, below))?;
    let result = BranchResult {
        outcome: name::of(name::CANCELLED),
        output: None,
        reason: None,
        is_retryable: false,
        cause: FailureCause::default(),
        is_cancelled: true,
    };
    scope::join(turn, queue, run, EndedScope { scope, result })?;
    push_in_order(queue, works);
    Ok(())
}

/// Ends all scopes of a run in which everything was cancelled and has ended.
pub(super) fn settle_all(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    if run.record.scopes.opened_count == 0 {
        return Ok(());
    }
    run.look_up_scopes(turn)?;
    let scopes: Vec<ScopeRecord> = run.open_scopes().cloned().collect();
    let works = close(turn, run, (ScopeNumber::ROOT, scopes))?;
    push_in_order(queue, works);
    Ok(())
}

/// Ends scopes that were cancelled with an outermost one, and the steps that opened scopes in them, the deepest first;
/// returns the work that follows.
fn close(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    (outermost, scopes): (ScopeNumber, Vec<ScopeRecord>),
) -> TurnResult<Works> {
    let mut settling = Vec::new();
    for activation in run.active(turn)?.into_iter().rev() {
        let Some(active) = run.take(turn, activation)? else {
            continue;
        };
        if active.ending.cancelled_with != Some(outermost) || !active.state.opens_scopes() {
            run.put_back(active);
            continue;
        }
        run.note(&active, EventKind::StepCancelled);
        resumable::keep_step(turn, run, &active)?;
        run.leave(&active);
        run.record.left_count += 1;
    }
    for scope in scopes.into_iter().rev() {
        let outcome = name::of(name::CANCELLED);
        let spent = EndedAttempt {
            scope: scope.id.number,
            parent: scope.parent,
            is_retried: false,
        };
        settling.extend(kept_signals::settling(turn, run, spent)?);
        run.note_scope(scope.id.clone(), EventKind::ScopeEnded { outcome });
        resumable::close_scope(turn, run, scope.id.number)?;
    }
    let settling = settling.into_iter();
    Ok(settling.map(|work| (run.number, work)).collect())
}

/// The work that settles the signals that the block of a step has taken, if the block has ended and the step has not.
pub(super) fn settling_of_ended(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> Result<Option<Work>, StoreError> {
    let Some(ended) = attempt_of_block(run, active, false) else {
        return Ok(None);
    };
    match run.scope(turn, ended.scope)? {
        Some(_) => Ok(None),
        // What it has done may be undone first, or the rest of the step may be deferred.
        None => kept_signals::settling(turn, run, ended),
    }
}

/// The scope and all open scopes below it, in the order in which they began.
fn below(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeRecord,
) -> Result<Vec<ScopeRecord>, StoreError> {
    let mut below = vec![scope];
    run.look_up_scopes(turn)?;
    for open in run.open_scopes() {
        // A scope has a higher number than the one around it.
        if below.iter().any(|around| around.id.number == open.parent) {
            below.push(open.clone());
        }
    }
    Ok(below)
}
