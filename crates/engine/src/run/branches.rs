//! Steps with branches: they begin in document order, and the step ends when all have ended (W56).

use super::outcome::{is_good, name};
use super::scope::{self, NewScope};
use crate::definition::{Branch, ParallelStep};
use crate::ids::{ScopeNumber, StepName};
use crate::json::{Json, quote};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, BranchPlace, BranchResult, BranchResults, Branches,
    EventKind, ScopeRecord, TargetResult, Work,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// Enters a step with branches: the first one begins next.
pub(super) fn enter(
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    step: &ParallelStep,
) {
    let first_scope = ScopeNumber(run.record.scopes_count + 1);
    run.record.scopes_count += step.branches.len() as u64;
    active.state = ActivationState::Branches(Branches {
        first_scope,
        ended_count: 0,
        has_waited: false,
    });
    let work = Work::BeginBranch(BranchPlace {
        activation: active.number,
        position: 0,
    });
    run.put_back(active);
    queue.push(run.number, work);
}

/// Begins the branch at a place, and after it the next one.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    place: BranchPlace,
) -> TurnResult<()> {
    let Some(active) = run.activation(turn, place.activation)?.cloned() else {
        return Ok(());
    };
    let ActivationState::Branches(state) = active.state else {
        panic!("only steps with branches begin any");
    };
    let definition = run.definition.clone();
    let branches = definition.definition.branches(active.step);
    let position = place.position as usize;
    if position + 1 < branches.len() {
        let next = BranchPlace {
            position: place.position + 1,
            ..place
        };
        queue.push(run.number, Work::BeginBranch(next));
    }
    let new = NewScope {
        number: state.scope(place.position),
        block: branches[position].block,
        position: place.position,
    };
    let work = scope::open(run, &active, new);
    queue.push(run.number, work);
    Ok(())
}

/// A branch whose scope has ended.
pub(super) struct EndedBranch {
    pub(super) scope: ScopeRecord,
    pub(super) result: BranchResult,
}

/// Notes the end of a branch; the last one ends the step.
pub(super) fn join(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: EndedBranch,
) -> TurnResult<()> {
    let EndedBranch { scope, result } = ended;
    let activation = scope.opener;
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let ActivationState::Branches(mut state) = active.state else {
        panic!("only a step with branches opens scopes");
    };
    state.ended_count += 1;
    state.has_waited |= scope.progress.has_waited;
    active.state = ActivationState::Branches(state);
    let kind = EventKind::BranchJoined {
        position: scope.position,
        outcome: result.outcome.clone(),
    };
    run.note(&active, kind);
    turn.put::<BranchResults>(&(run.number, activation, scope.position), result);
    let definition = run.definition.clone();
    let branches = definition.definition.branches(active.step);
    let at = run.at(&active);
    let is_last = state.ended_count as usize == branches.len();
    if is_last && state.has_waited {
        run.end_wait(active.scope);
    }
    run.put_back(active);
    if is_last {
        let target_result = joined(turn, run, at, branches)?;
        let work = Work::FinishStep {
            activation,
            target_result,
        };
        queue.push(run.number, work);
    }
    Ok(())
}

/// The result of a step all of whose branches have ended. Their rows are deleted.
fn joined(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    at: ActivationRef,
    branches: &[Branch],
) -> TurnResult<TargetResult> {
    let mut results = Vec::with_capacity(branches.len());
    for (position, branch) in (0..).zip(branches) {
        let key = (at.run, at.activation, position);
        let result = turn.get::<BranchResults>(&key)?;
        let result = result.expect("the result of a branch is kept until its step ends");
        turn.delete::<BranchResults>(&key);
        results.push((branch, result));
    }
    let failed = results.iter().find(|(_, result)| !is_good(&result.outcome));
    let (outcome, reason, output) = match failed {
        None => (name::SUCCESS, None, outputs(turn, &results)?),
        Some((branch, result)) => {
            let message = describe(branch, result);
            let output = failure(turn, &results, (&branch.name, &message))?;
            (name::FAILURE, Some(message), output)
        }
    };
    let Some(output) = output else {
        return Ok(too_large(turn, run));
    };
    Ok(TargetResult {
        from: Awaited::Branches,
        outcome: name::of(outcome),
        output: Some(run.store_payload(turn, Json::from_checked(output))),
        reason,
        is_retryable: false,
    })
}

type Results<'a> = [(&'a Branch, Arc<BranchResult>)];

/// The outputs of branches by their names; `None` if they are too large for a payload.
fn outputs(turn: &mut Turn<'_, '_>, results: &Results<'_>) -> Result<Option<String>, StoreError> {
    let mut text = String::new();
    let is_whole = by_name(turn, results, &mut text, |_, output, text| {
        text.push_str(output);
    })?;
    Ok(is_whole.then_some(text))
}

/// The error of a step of which a branch failed, with the outcomes and outputs of all branches.
fn failure(
    turn: &mut Turn<'_, '_>,
    results: &Results<'_>,
    (branch, message): (&StepName, &str),
) -> Result<Option<String>, StoreError> {
    let mut text = String::from("{\"error\":{\"code\":\"branch_failed\",\"message\":");
    quote(message, &mut text);
    text.push_str(",\"branch\":");
    quote(branch.as_str(), &mut text);
    text.push_str("},\"branches\":");
    let is_whole = by_name(turn, results, &mut text, |result, output, text| {
        text.push_str("{\"outcome\":");
        quote(result.outcome.as_str(), text);
        text.push_str(",\"output\":");
        text.push_str(output);
        text.push('}');
    })?;
    text.push('}');
    Ok(is_whole.then_some(text))
}

/// Writes an object with what `show` writes of each branch and its output; false once it is too large for a payload.
fn by_name(
    turn: &mut Turn<'_, '_>,
    results: &Results<'_>,
    text: &mut String,
    show: impl Fn(&BranchResult, &str, &mut String),
) -> Result<bool, StoreError> {
    text.push('{');
    for (position, (branch, result)) in results.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        quote(branch.name.as_str(), text);
        text.push(':');
        match result.output {
            Some(output) => show(result, turn.payload(output)?.as_str(), text),
            None => show(result, "null", text),
        }
        if text.len() > PAYLOAD_BYTES_MAX {
            return Ok(false);
        }
    }
    text.push('}');
    Ok(true)
}

fn describe(branch: &Branch, result: &BranchResult) -> String {
    let (branch, outcome) = (&branch.name, &result.outcome);
    cut(&match &result.reason {
        Some(reason) => format!("branch \"{branch}\" failed: {reason}"),
        None => format!("branch \"{branch}\" ended with outcome \"{outcome}\""),
    })
}

fn too_large(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TargetResult {
    let message = format!(
        "expected the outputs of the branches to have at most {PAYLOAD_BYTES_MAX} bytes together, but they have more"
    );
    let output = Json::error("result_too_large", &message);
    TargetResult {
        from: Awaited::Branches,
        outcome: name::of(name::FAILURE),
        output: Some(run.store_payload(turn, output)),
        reason: Some(message),
        is_retryable: false,
    }
}
