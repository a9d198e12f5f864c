//! What a resume needs of steps and scopes that did not succeed, and when it is deleted (W89): once the step that opened the
//! scopes ends otherwise than with a failure, is tried again, or is entered again.

use super::scope::branches_of;
use super::{branches, state};
use crate::definition::{CallRole, StepIndex};
use crate::ids::ScopeNumber;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Dropped, FormerBranches, FormerItems, JoinDecision,
    ResumableScopes, ResumableSteps, ScopeId, ScopeRecord, StepResults, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Whether a scope did not succeed, and is kept for a resume.
pub(super) fn is_kept(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    scope: ScopeNumber,
) -> Result<bool, StoreError> {
    Ok(turn.get::<ResumableScopes>(&(run.number, scope))?.is_some())
}

/// Keeps what a resume needs of a step that has failed or was cancelled: what it has opened, or its child.
pub(super) fn keep_step(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> Result<(), StoreError> {
    let is_needed = match active.state {
        ActivationState::Child(_) => active.call == CallRole::Target,
        ActivationState::Branches(_) | ActivationState::Iterations(_) => true,
        _ => false,
    };
    if is_of_handler(run, active) {
        return branches::forget_results(turn, run, active);
    }
    if is_needed {
        let key = (run.number, active.scope, active.step);
        turn.put::<ResumableSteps>(&key, active.clone());
    }
    Ok(())
}

/// Ends a scope that has not succeeded, and keeps what a resume needs of it.
pub(super) fn close_scope(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    number: ScopeNumber,
) -> Result<(), StoreError> {
    let Some(scope) = run.scope(turn, number)?.cloned() else {
        return Ok(());
    };
    if is_below_handler(run, &scope.id) {
        state::forget(turn, run, number)?;
    } else {
        let stopped = ScopeRecord {
            cancelling: None,
            ..scope
        };
        turn.put::<ResumableScopes>(&(run.number, number), stopped);
    }
    run.close_scope(number);
    Ok(())
}

/// Whether a step is a handler of the run, or below one.
fn is_of_handler(run: &LoadedRun, active: &Activation) -> bool {
    let is_handler = run.definition.definition.is_handler(active.step);
    is_handler || is_below_handler(run, &run.scope_id(active.scope))
}

/// Whether a scope is below a handler of the run, which a resume never continues.
fn is_below_handler(run: &LoadedRun, scope: &ScopeId) -> bool {
    let outermost = scope.path.0.first();
    outermost.is_some_and(|down| run.definition.definition.is_handler(down.step))
}

/// A step that is left.
pub(super) struct LeftStep<'a> {
    pub(super) active: &'a Activation,
    /// Whether it has failed.
    pub(super) has_failed: bool,
    /// Which of its blocks were undone, if any.
    pub(super) undone: Option<Dropped>,
}

/// Keeps what a resume needs of a step that is left because it has failed; of any other one, what is known of its blocks is
/// deleted. Blocks that were undone start from their beginning.
pub(super) fn leave(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &LoadedRun,
    left: &LeftStep<'_>,
) -> Result<(), StoreError> {
    let active = left.active;
    let is_undone = match left.undone {
        Some(Dropped::All) => true,
        Some(Dropped::Failed) => matches!(active.state, ActivationState::Iterations(_)),
        Some(Dropped::Nothing) | None => false,
    };
    if !left.has_failed || is_undone || is_of_handler(run, active) {
        return forget(turn, queue, run, active);
    }
    keep_step(turn, run, active)?;
    let branches = active.state.branches();
    if let Some(branches) = branches.filter(|_| left.undone == Some(Dropped::Failed)) {
        let is_undone = |position: &u32| match branches.decision {
            Some(JoinDecision::First(winner)) => *position != winner,
            _ => branches.good & (1 << position) == 0,
        };
        for position in (0..branches.begun_count).filter(is_undone) {
            let undone = FormerBranches::of_scope(branches.scope(position));
            queue.push(run.number, Work::ForgetBranches(undone));
        }
    }
    Ok(())
}

/// Deletes what is known of the blocks of a step that is left, but for the results of its branches.
fn forget(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &LoadedRun,
    active: &Activation,
) -> Result<(), StoreError> {
    match &active.state {
        ActivationState::Branches(branches) => {
            branches::forget_results(turn, run, active)?;
            if branches.good_count < branches.begun_count {
                let all = branches_of(run, active.step, branches.first_scope);
                let former = FormerBranches {
                    keeps_results: true,
                    ..all
                };
                queue.push(run.number, Work::ForgetBranches(former));
            }
        }
        ActivationState::Iterations(iterations) => {
            let former = FormerItems::of(active.number, iterations);
            queue.push(run.number, Work::ForgetItems(former));
        }
        _ => {}
    }
    Ok(())
}

/// What is kept of a step.
#[derive(Clone, Copy)]
pub(super) struct FormerStep {
    pub(super) scope: ScopeNumber,
    pub(super) step: StepIndex,
    /// Whether the results of the steps below it are kept.
    pub(super) keeps_results: bool,
}

/// Deletes what is kept of a step; what is kept of the scopes below it follows.
pub(super) fn forget_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    former: FormerStep,
) -> Result<(), StoreError> {
    let key = (run.number, former.scope, former.step);
    let Some(stopped) = turn.get::<ResumableSteps>(&key)? else {
        return Ok(());
    };
    turn.delete::<ResumableSteps>(&key);
    match &stopped.state {
        ActivationState::Branches(branches) => {
            branches::forget_results(turn, run, &stopped)?;
            // Those of branches that succeeded were not joined, if the step was cancelled.
            for position in 0..branches.begun_count {
                state::forget(turn, run, branches.scope(position))?;
            }
            let all = branches_of(run, former.step, branches.first_scope);
            let branches = FormerBranches {
                keeps_results: former.keeps_results,
                ..all
            };
            queue.push(run.number, Work::ForgetBranches(branches));
        }
        ActivationState::Iterations(iterations) => {
            let items = FormerItems::of(stopped.number, iterations);
            queue.push(run.number, Work::ForgetItems(items));
        }
        _ => {}
    }
    Ok(())
}

/// Deletes what is kept of the branches of a former visit: at most the results of all steps of the definition.
pub(super) fn forget_branches(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    former: FormerBranches,
) -> TurnResult<()> {
    let numbers = (former.first_scope.0..).take(former.count as usize);
    for scope in numbers.map(ScopeNumber) {
        let key = (run.number, scope);
        if turn.get::<ResumableScopes>(&key)?.is_some() {
            turn.delete::<ResumableScopes>(&key);
            state::forget(turn, run, scope)?;
        }
        for ((_, _, step), _) in turn.list::<ResumableSteps>(&key, usize::MAX)? {
            let step = FormerStep {
                scope,
                step,
                keeps_results: former.keeps_results,
            };
            forget_step(turn, queue, run, step)?;
        }
        if former.keeps_results {
            continue;
        }
        for ((_, _, step), result) in turn.list::<StepResults>(&key, usize::MAX)? {
            turn.delete::<StepResults>(&(run.number, scope, step));
            if let Some(first_scope) = result.first_scope {
                let former = branches_of(run, step, first_scope);
                queue.push(run.number, Work::ForgetBranches(former));
            }
        }
    }
    Ok(())
}
