//! Steps that open blocks: these begin in document order, and the join decides how and when the step ends (W56, W69).

use super::failure::{self, is_failure};
use super::outcome::{is_good, keeps_writes, name};
use super::scope::{self, NewScope};
use super::state::{self, Writers};
use crate::definition::{Branch, Join, OnFailure, ParallelStep, StepKind};
use crate::ids::{OutcomeName, ScopeNumber, StepName};
use crate::json::{Json, quote};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::message::cut;
use crate::mostly_default::MostlyDefault;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, BranchPlace, BranchResult, BranchResults, Branches,
    EventKind, FailureCause, JoinDecision, ScopeRecord, StepTimeout, TargetResult, Work,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};
use std::sync::Arc;

/// Enters a step that opens blocks, or tries it again: the first block begins next.
pub(super) fn enter(queue: &mut WorkQueue, run: &mut LoadedRun, mut active: Draft<Activation>) {
    let first_scope = ScopeNumber(run.record.scopes.opened_count + 1);
    let branches_count = run.definition.definition.branches(active.step).len();
    run.record.scopes.opened_count += branches_count as u64;
    active.state = ActivationState::Branches(Branches {
        first_scope,
        begun_count: 0,
        ended_count: 0,
        good_count: 0,
        good: 0,
        skipped_count: 0,
        decision: None,
        has_waited: false,
        steps_since_wait: 0,
    });
    let work = Work::BeginBranch(BranchPlace {
        activation: active.number,
        position: 0,
    });
    run.put_back(active);
    queue.push(run.number, work);
}

/// Begins the branch at a place, and after it the next one, unless the step is decided.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    place: BranchPlace,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, place.activation)? else {
        return Ok(());
    };
    let ActivationState::Branches(mut state) = active.state else {
        panic!("only steps with branches begin any");
    };
    if state.decision.is_some() || active.ending.cancelled_with.is_some() {
        run.put_back(active);
        return Ok(());
    }
    state.begun_count += 1;
    active.state = ActivationState::Branches(state);
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
    run.put_back(active);
    queue.push(run.number, work);
    Ok(())
}

/// A branch whose scope has ended.
pub(super) struct EndedScope {
    pub(super) scope: ScopeRecord,
    pub(super) result: BranchResult,
}

/// Notes the end of a branch. Once the step is decided, the open branches are cancelled; the last one ends the step.
pub(super) fn join(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: EndedScope,
) -> TurnResult<()> {
    let EndedScope { scope, result } = ended;
    let Some(mut active) = run.take(turn, scope.opener)? else {
        return Ok(());
    };
    let ActivationState::Branches(before) = active.state else {
        panic!("only a step with branches opens scopes");
    };
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let mut state = before;
    state.has_waited |= scope.progress.has_waited;
    state.steps_since_wait = state.steps_since_wait.max(scope.progress.steps_since_wait);
    count(&mut state, scope.position, &result);
    if !result.is_cancelled && state.decision.is_none() {
        state.decision = match &step.kind {
            StepKind::Parallel(parallel) => decide(parallel, &state, scope.position),
            // It has only one block.
            _ => Some(JoinDecision::First(scope.position)),
        };
    }
    active.state = ActivationState::Branches(state);
    if !result.is_cancelled && matches!(step.kind, StepKind::Parallel(_)) {
        let kind = EventKind::BranchJoined {
            position: scope.position,
            outcome: result.outcome.clone(),
        };
        run.note(&active, kind);
    }
    turn.put::<BranchResults>(&(run.number, active.number, scope.position), result);
    let is_new = before.decision.is_none();
    settle(turn, queue, run, Settling { active, is_new })
}

/// The step, which is not decided, has taken too long (W70): its open branches are cancelled.
pub(super) fn time_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let ActivationState::Branches(mut state) = active.state else {
        panic!("only a step with branches waits for them");
    };
    state.decision = Some(JoinDecision::TimedOut);
    active.state = ActivationState::Branches(state);
    let is_new = true;
    settle(turn, queue, run, Settling { active, is_new })
}

/// A step with branches of which one has ended, or that was decided.
pub(super) struct Settling {
    pub(super) active: Draft<Activation>,
    /// Whether it was not decided before.
    pub(super) is_new: bool,
}

/// Ends the step if it is decided and no branch is open. If it has just been decided, the open branches are cancelled.
pub(super) fn settle(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    settling: Settling,
) -> TurnResult<()> {
    let Settling { active, is_new } = settling;
    let state = *active.state.branches().expect("a step with branches");
    let (at, scope) = (run.at(&active), active.scope);
    run.put_back(active);
    let Some(decision) = state.decision else {
        return Ok(());
    };
    if state.ended_count < state.begun_count {
        if is_new {
            cancel_open(turn, queue, at, &state)?;
        }
        return Ok(());
    }
    run.add_steps(scope, state.has_waited, state.steps_since_wait);
    let target_result = joined(turn, run, at, decision)?;
    let work = Work::FinishStep {
        activation: at.activation,
        target_result,
    };
    queue.push(run.number, work);
    Ok(())
}

fn count(state: &mut Branches, position: u32, result: &BranchResult) {
    state.ended_count += 1;
    if !result.is_cancelled {
        state.good |= u64::from(is_good(&result.outcome)) << position;
        state.good_count += u32::from(is_good(&result.outcome));
        state.skipped_count += u32::from(result.outcome.as_str() == name::SKIPPED);
    }
}

/// How the step ends, if the branches that have ended say so, the one at `position` last (W56).
pub(super) fn decide(step: &ParallelStep, state: &Branches, position: u32) -> Option<JoinDecision> {
    let total = u32::try_from(step.branches.len()).expect("branches are bounded");
    let is_over = state.ended_count == total;
    let succeeded_count = state.good_count - state.skipped_count;
    let raced_count = state.ended_count - state.skipped_count;
    let failure_if = |is_failure: bool| is_failure.then_some(JoinDecision::Failure);
    let success_if = |is_success: bool| is_success.then_some(JoinDecision::Success);
    let cancels = step.on_failure == OnFailure::Cancel;
    let decision = match step.join {
        Join::All => failure_if(cancels && state.good_count < state.ended_count)
            .or_else(|| success_if(state.good_count == total)),
        Join::Any => success_if(succeeded_count > 0),
        // The first one that was not skipped.
        Join::First => (raced_count > 0).then_some(JoinDecision::First(position)),
        Join::Count(wanted) => {
            let wanted = u32::from(wanted);
            let is_out_of_reach = succeeded_count + (total - state.ended_count) < wanted;
            // If all are skipped, none of them has failed.
            let has_failed = raced_count > 0 && is_out_of_reach;
            success_if(succeeded_count >= wanted).or_else(|| failure_if(cancels && has_failed))
        }
    };
    decision
        .or_else(|| success_if(state.skipped_count == total))
        .or_else(|| failure_if(is_over))
}

/// Cancels the branches of a decided step that are still open.
fn cancel_open(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    at: ActivationRef,
    state: &Branches,
) -> Result<(), StoreError> {
    let results = turn.list::<BranchResults>(&(at.run, at.activation), usize::MAX)?;
    let is_open = |position: &u32| results.iter().all(|((_, _, ended), _)| ended != position);
    // The first one is cancelled first.
    for position in (0..state.begun_count).rev().filter(is_open) {
        let scope = state.scope(position);
        queue.push(at.run, Work::CancelScope { scope });
    }
    Ok(())
}

/// The result of a step of which no branch is open.
fn joined(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    at: ActivationRef,
    decision: JoinDecision,
) -> TurnResult<TargetResult> {
    let definition = run.definition.clone();
    let active = run.activation(turn, at.activation)?;
    let active = active.expect("the step was put back").clone();
    let (step, state) = (active.step, active.state.branches());
    let state = state.expect("a step with branches");
    let kind = &definition.definition.step(step).kind;
    let branches = definition.definition.branches(step);
    let mut results = Vec::with_capacity(branches.len());
    for (position, branch) in (0..).zip(branches) {
        let key = (at.run, at.activation, position);
        results.push((branch, turn.get::<BranchResults>(&key)?));
    }
    let ended_well = (0..).zip(&results).filter_map(|(position, (_, result))| {
        let result = result.as_ref()?;
        let keeps = !result.is_cancelled && keeps_writes(kind, &result.outcome);
        keeps.then(|| state.scope(position))
    });
    let writers = Writers {
        into: active.scope,
        branches: ended_well.collect(),
        merge: match kind {
            StepKind::Parallel(parallel) => &parallel.merge,
            _ => &[],
        },
    };
    // Those of a block are joined once it is known that the block is not tried again.
    if let StepKind::Parallel(_) = kind {
        match state::join(turn, run, &writers)? {
            Ok(joined) => state::note_joined(turn, run, &active, joined),
            Err(not_written) => {
                return Ok(TargetResult {
                    from: Awaited::Branches,
                    ..not_written.ends_step(turn, run)
                });
            }
        }
    }
    if decision == JoinDecision::TimedOut {
        return timed_out(turn, run, &active, &results);
    }
    if let StepKind::Block(_) = kind {
        return Ok(of_block(turn, run, &results));
    }
    let (outcome, cause) = ending(&results, decision);
    let is_retryable = cause.is_none_or(|(_, result)| result.is_retryable);
    let reason = reason(&outcome, cause);
    let output = match &reason {
        None => outputs(turn, &results)?,
        Some(message) => {
            let error = BranchesError {
                code: "branch_failed",
                message,
                branch: cause.map(|(branch, _)| &branch.name),
            };
            failure_output(turn, &results, &error)?
        }
    };
    let Some(output) = output else {
        return Ok(too_large(turn, run));
    };
    Ok(TargetResult {
        from: Awaited::Branches,
        outcome,
        output: Some(run.store_payload(turn, Json::from_checked(output))),
        reason,
        is_retryable,
        cause: MostlyDefault::default(),
        not_before_ms: None,
        state_patch: None,
    })
}

/// Deletes what is known of the ends of a step's branches, but for what a resume needs.
pub(super) fn forget_results(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> Result<(), StoreError> {
    for (key, _) in turn.list::<BranchResults>(&(run.number, active.number), usize::MAX)? {
        turn.delete::<BranchResults>(&key);
    }
    Ok(())
}

/// Drops what an attempt at a block has written to the state, which is tried again (W69).
pub(super) fn drop_writes(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> Result<(), StoreError> {
    match block_scope(run, active) {
        Some(scope) => state::forget(turn, run, scope),
        None => Ok(()),
    }
}

/// Writes what a block has written to the state that ended with this result, and is not tried again. If it cannot be
/// written, the result says so.
pub(super) fn join_block(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &mut TargetResult,
) -> Result<(), StoreError> {
    let definition = run.definition.clone();
    let kind = &definition.definition.step(active.step).kind;
    let is_kept = keeps_writes(kind, &target_result.outcome);
    let Some(scope) = block_scope(run, active).filter(|_| is_kept) else {
        return Ok(());
    };
    let writers = Writers {
        into: active.scope,
        branches: vec![scope],
        merge: &[],
    };
    match state::join(turn, run, &writers)? {
        Ok(joined) => state::note_joined(turn, run, active, joined),
        Err(not_written) => *target_result = not_written.ends_step(turn, run),
    }
    Ok(())
}

/// The scope of the block that a block step has executed.
fn block_scope(run: &LoadedRun, active: &Activation) -> Option<ScopeNumber> {
    match run.definition.definition.step(active.step).kind {
        StepKind::Block(_) => active.state.branches().map(|block| block.first_scope),
        _ => None,
    }
}

/// The result of a step that has taken too long (W70). The branches that it has are in its output.
fn timed_out(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    results: &Results<'_>,
) -> TurnResult<TargetResult> {
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let results = match definition.step(active.step).kind {
        StepKind::Parallel(_) => results,
        _ => &[],
    };
    let timeout = StepTimeout::Total;
    let limit_ms = definition.total_ms(active.step, active.call);
    let message = timeout.message(limit_ms.unwrap_or_default());
    let error = BranchesError {
        code: timeout.code(),
        message: &message,
        branch: None,
    };
    let output = match failure_output(turn, results, &error)? {
        Some(output) => Json::from_checked(output),
        None => Json::error(timeout.code(), &message),
    };
    Ok(TargetResult {
        from: Awaited::Branches,
        output: Some(run.store_payload(turn, output)),
        reason: Some(message),
        cause: FailureCause::of_timeout(timeout).into(),
        ..TargetResult::of_engine(name::of(name::TIMEOUT))
    })
}

/// The result of a step with one block: that of the block (W69).
fn of_block(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, results: &Results<'_>) -> TargetResult {
    let [(_, Some(result))] = results else {
        panic!("a step with one block has joined it");
    };
    let cause = failure::cause_of_block(result);
    let output = match (result.output, &result.reason) {
        (None, Some(reason)) if is_failure(&result.outcome) => {
            let code = cause.code.as_deref().unwrap_or_default();
            Some(run.store_payload(turn, Json::error(code, reason)))
        }
        (output, _) => output,
    };
    TargetResult {
        from: Awaited::Branches,
        outcome: result.outcome.clone(),
        output,
        reason: result.reason.clone(),
        is_retryable: result.is_retryable,
        cause: cause.into(),
        not_before_ms: None,
        state_patch: None,
    }
}

/// The outcome of the step and, if it fails, the branch that is named as the reason: the first failed one in document
/// order, or the one that decided.
fn ending<'r>(
    results: &'r Results<'_>,
    decision: JoinDecision,
) -> (OutcomeName, Option<(&'r Branch, &'r BranchResult)>) {
    let known = |(branch, result): &'r (&'r Branch, Option<Arc<BranchResult>>)| {
        Some((*branch, &**result.as_ref()?))
    };
    match decision {
        JoinDecision::Success => (name::of(name::SUCCESS), None),
        JoinDecision::Failure => {
            let mut ended = results.iter().filter_map(known);
            let failed =
                ended.find(|(_, result)| !result.is_cancelled && !is_good(&result.outcome));
            (name::of(name::FAILURE), failed)
        }
        JoinDecision::TimedOut => (name::of(name::TIMEOUT), None),
        JoinDecision::First(position) => {
            let first =
                known(&results[position as usize]).expect("a branch that decided has ended");
            let outcome = first.1.outcome.clone();
            let cause = is_failure(&outcome).then_some(first);
            (outcome, cause)
        }
    }
}

/// Why the step fails, if it does.
fn reason(outcome: &OutcomeName, cause: Option<(&Branch, &BranchResult)>) -> Option<String> {
    match cause {
        Some((branch, result)) => Some(describe(branch, result)),
        // Too many of them were skipped.
        None => is_failure(outcome).then(|| "too few branches succeeded".to_owned()),
    }
}

/// What became of the branches; `None` for those that never began.
type Results<'a> = [(&'a Branch, Option<Arc<BranchResult>>)];

/// What follows the last branch at most: the ends of two objects. In bytes.
const CLOSING_BYTES: usize = 2;

/// The outputs of branches by their names; `None` if they are too large for a payload.
fn outputs(turn: &mut Turn<'_, '_>, results: &Results<'_>) -> Result<Option<String>, StoreError> {
    let mut text = String::new();
    let is_whole = by_name(turn, results, &mut text, |_, output, text| {
        text.push_str(output);
    })?;
    Ok(is_whole.then_some(text))
}

/// Why a step with branches has failed.
struct BranchesError<'a> {
    code: &'static str,
    message: &'a str,
    /// The branch that failed.
    branch: Option<&'a StepName>,
}

/// The error of a step with branches, with the outcomes and outputs of all branches.
fn failure_output(
    turn: &mut Turn<'_, '_>,
    results: &Results<'_>,
    error: &BranchesError<'_>,
) -> Result<Option<String>, StoreError> {
    let code = error.code;
    let mut text = format!("{{\"error\":{{\"code\":\"{code}\",\"message\":");
    quote(error.message, &mut text);
    if let Some(branch) = error.branch {
        text.push_str(",\"branch\":");
        quote(branch.as_str(), &mut text);
    }
    text.push('}');
    if results.is_empty() {
        text.push('}');
        return Ok(Some(text));
    }
    text.push_str(",\"branches\":");
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
        match result.as_ref().map(|result| (result, result.output)) {
            Some((result, Some(output))) => show(result, turn.payload(output)?.as_str(), text),
            Some((result, None)) => show(result, "null", text),
            None => text.push_str("null"),
        }
        if text.len() > PAYLOAD_BYTES_MAX - CLOSING_BYTES {
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
    TargetResult {
        from: Awaited::Branches,
        ..failure::failed(turn, run, "result_too_large", message)
    }
}
