//! Cancelling a scope: everything below it ends, and nothing begins there afterwards (W54).

use super::branches::EndedScope;
use super::finish_step::attempt_of_block;
use super::kept_signals::{self, EndedAttempt};
use super::outcome::name;
use super::step_timer::{clear_deadline, wake_timer};
use super::{approval, compensation, index, scope, state, timeout_timers};
use crate::ids::{RunNumber, ScopeNumber};
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, BranchResult, BranchResults, EventKind, FailureCause,
    FormerBranches, FormerItems, SchemaChecks, ScopeRecord, UndoOwner, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::{plan, task};

/// Cancels a scope and hands its end to the step that opened it. A definition bounds how many steps this stops (E520).
pub(super) fn cancel(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    number: ScopeNumber,
) -> TurnResult<()> {
    let Some(scope) = run.scope(turn, number)?.cloned() else {
        return Ok(());
    };
    let (opener, around) = (scope.opener, scope.parent);
    let below = below(turn, run, scope)?;
    let mut settling = Vec::new();
    let mut children = Vec::new();
    let mut forgotten = Vec::new();
    for activation in run.active(turn)?.into_iter().rev() {
        let Some(mut active) = run.take(turn, activation)? else {
            continue;
        };
        if below.iter().all(|scope| scope.id.number != active.scope) {
            run.put_back(active);
            continue;
        }
        // What is undone already is undone to its end.
        if active.call.is_compensation() {
            active.scope = around;
            active.undoes_for = Some(UndoOwner::Step(opener));
            run.put_back(active);
            continue;
        }
        compensation::enter_cancelled(turn, run, &active)?;
        settling.extend(settling_of_ended(turn, run, &active)?);
        let child = stop(turn, run, &active)?;
        forgotten.extend(rows_left(&active));
        children.extend(child.map(|child| (child, active.step)));
        run.note(&active, EventKind::StepCancelled);
        timeout_timers::clear(turn, run.at(&active), &active);
        run.leave(&active);
        run.record.left_count += 1;
    }
    let mut cancelled = None;
    // The deepest first.
    for scope in below.into_iter().rev() {
        let outcome = name::of(name::CANCELLED);
        state::forget(turn, run, scope.id.number)?;
        let spent = EndedAttempt {
            scope: scope.id.number,
            parent: scope.parent,
            is_retried: false,
        };
        settling.extend(kept_signals::settling(turn, run, spent)?);
        run.note_scope(scope.id.clone(), EventKind::ScopeEnded { outcome });
        run.scope(turn, scope.id.number)?;
        run.close_scope(scope.id.number);
        cancelled = Some(scope);
    }
    let result = BranchResult {
        outcome: name::of(name::CANCELLED),
        output: None,
        reason: None,
        is_retryable: false,
        cause: FailureCause::default(),
        is_cancelled: true,
    };
    let scope = cancelled.expect("a scope is below itself");
    scope::join(turn, queue, run, EndedScope { scope, result })?;
    for work in settling.into_iter().rev().chain(forgotten) {
        queue.push(run.number, work);
    }
    // They end before the step does.
    for (child, step) in children {
        let step = &run.definition.definition.step(step).name;
        let reason = format!("step \"{step}\" of parent {} was cancelled", run.record.id);
        let reason = Some(reason);
        queue.push(child, Work::Cancel { reason });
    }
    Ok(())
}

/// The work that settles the signals that the block of a step has taken, if the block has ended and the step has not.
pub(super) fn settling_of_ended(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> Result<Option<Work>, StoreError> {
    match attempt_of_block(run, active, false).filter(|_| active.undoing.is_some()) {
        Some(ended) => kept_signals::settling(turn, run, ended),
        None => Ok(None),
    }
}

/// The work that deletes the rows of the blocks that a cancelled step has opened.
fn rows_left(active: &Activation) -> Option<Work> {
    match &active.state {
        ActivationState::Iterations(iterations) => {
            let former = FormerItems::of(active.number, iterations);
            Some(Work::ForgetItems(former))
        }
        ActivationState::Branches(branches) => {
            let former = FormerBranches {
                first_scope: branches.first_scope,
                step: active.step,
            };
            Some(Work::ForgetBranches(former))
        }
        _ => None,
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

/// Ends what an active step waits for, but for a child: its number is returned, so that the caller has it cancelled.
pub(super) fn stop(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> TurnResult<Option<RunNumber>> {
    let at = run.at(active);
    match &active.state {
        // The rows of its items are deleted later.
        ActivationState::Executing | ActivationState::Iterations(_) => {}
        ActivationState::Action(action_run) => task::cancel(turn, *action_run)?,
        ActivationState::Plan(plan) => plan::abandon(turn, run, active, plan)?,
        ActivationState::Signal(wait) => {
            clear_deadline(turn, at, wait.deadline_at_ms);
        }
        ActivationState::Approval(approval) => {
            approval::forget(turn, at)?;
            clear_deadline(turn, at, approval.deadline_at_ms);
        }
        ActivationState::Child(child) => {
            index::expire_child(turn, *child)?;
            return Ok(Some(*child));
        }
        ActivationState::ChildInput { .. } | ActivationState::OutputCheck(_) => {
            turn.delete::<SchemaChecks>(&(at.run, at.activation));
        }
        ActivationState::Retry { due_ms }
        | ActivationState::Poll { due_ms }
        | ActivationState::Timer { due_ms }
        | ActivationState::Delay { due_ms } => {
            turn.clear_timer(wake_timer(at, *due_ms));
        }
        ActivationState::Branches(branches) => {
            for (key, _) in turn.list::<BranchResults>(&(at.run, at.activation), usize::MAX)? {
                turn.delete::<BranchResults>(&key);
            }
            for position in 0..branches.begun_count {
                state::forget(turn, run, branches.scope(position))?;
            }
        }
    }
    Ok(None)
}
