//! Continuing a step with branches that has failed or was cancelled (W89).

use super::branches::{Settling, decide, settle};
use super::outcome::keeps_writes;
use super::scope::{self, NewScope};
use crate::definition::StepKind;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, BranchPlace, BranchResults, Branches, JoinDecision, Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// Continues a step that has failed or was cancelled (W89): the branches that succeeded keep their results, the others
/// continue where they have stopped.
pub(super) fn resume(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let mut state = *active.state.branches().expect("a step with branches");
    let total = scope::branches_count(run, active.step);
    let open = stopped_branches(turn, run, &active)?;
    let is_won = match state.decision {
        Some(JoinDecision::Success) => true,
        Some(JoinDecision::First(winner)) => !open.contains(&winner),
        _ => open.is_empty() && state.begun_count == total,
    };
    if is_won {
        // Only what follows from the ends of its branches has failed, or was to come. The others have lost.
        state.ended_count = state.begun_count;
        if !is_decided(&state)
            && let StepKind::Parallel(parallel) = &run.definition.definition.step(active.step).kind
        {
            // The join of another revision may decide otherwise.
            state.decision = decide(parallel, &state, 0);
        }
        active.state = ActivationState::Branches(state);
        let is_new = false;
        return settle(turn, queue, run, Settling { active, is_new });
    }
    state.decision = None;
    state.ended_count = state.begun_count - u32::try_from(open.len()).expect("it is bounded");
    active.state = ActivationState::Branches(state);
    let place = |position| BranchPlace {
        activation: active.number,
        position,
    };
    if state.begun_count < total {
        queue.push(run.number, Work::BeginBranch(place(state.begun_count)));
    }
    let branches = run.definition.clone();
    let branches = branches.definition.branches(active.step);
    let mut works = Vec::new();
    for position in open {
        let key = (run.number, active.number, position);
        if turn.get::<BranchResults>(&key)?.is_some() {
            turn.delete::<BranchResults>(&key);
        }
        let new = NewScope {
            number: state.scope(position),
            block: branches[position as usize].block,
            position,
        };
        works.push(scope::open_again(turn, run, &active, new)?);
    }
    queue.push_all(run.number, works.into_iter().rev());
    run.put_back(active);
    Ok(())
}

/// Whether enough branches have succeeded, or the one that was first has ended.
fn is_decided(state: &Branches) -> bool {
    matches!(
        state.decision,
        Some(JoinDecision::Success | JoinDecision::First(_))
    )
}

/// The branches that have begun and neither succeeded nor ended so that their writes are kept.
fn stopped_branches(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> Result<Vec<u32>, StoreError> {
    let kind = &run.definition.definition.step(active.step).kind;
    let state = active.state.branches().expect("a step with branches");
    let mut stopped = Vec::new();
    for position in 0..state.begun_count {
        let result = turn.get::<BranchResults>(&(run.number, active.number, position))?;
        let is_kept = result
            .is_some_and(|result| !result.is_cancelled && keeps_writes(kind, &result.outcome));
        if !is_kept {
            stopped.push(position);
        }
    }
    Ok(stopped)
}
