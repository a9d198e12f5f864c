//! Steps that execute a block for each element of an array (W57).
//!
//! The elements are written to separate rows first, so that the cost of an iteration does not depend on their number.
//! After an iteration, only what the end of the step needs is kept.

use super::branches::EndedScope;
use super::failure::failed;
use super::iteration::{Iteration, element_bytes};
use super::loop_result::{self, EndedLoop};
use super::outcome::is_good;
use super::render::{self, DataContext, Mapped};
use super::scope::{self, NewScope};
use super::{resumable, state};
use crate::definition::{Definition, ForEachStep, OnFailure, StepKind};
use crate::ids::ScopeNumber;
use crate::json::{self, Json};
use crate::limits::{ITEMS_MAX, ITEMS_PER_BATCH_MAX};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, FormerBranches, FormerItems, ItemPosition, ItemRecord,
    Items, IterationResults, Iterations, ResumableScopes, TargetResult, Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};
use std::ops::ControlFlow;

/// Enters a step, or ends it if there is nothing to iterate over.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let activation = active.number;
    let work = match begin_iterations(turn, run, &mut active)? {
        Ok(first) => Work::SplitItems(first),
        Err(target_result) => Work::FinishStep {
            activation,
            target_result,
        },
    };
    run.put_back(active);
    queue.push(run.number, work);
    Ok(())
}

/// Resolves and counts the items; returns the position of the first one, or the result of the step.
fn begin_iterations(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
) -> TurnResult<Result<ItemPosition, TargetResult>> {
    let definition = run.definition.clone();
    let step = step_of(&definition.definition, active);
    let context = DataContext::of(active.scope);
    let items = match render::stored(turn, run, context, &step.items)? {
        Ok(items) => items,
        Err(refused) => return Ok(Err(refused.ends_step(turn, run, Mapped::Items))),
    };
    let text = turn.payload(items)?;
    let text = text.as_str();
    let Some(first) = first_item(text, active.number) else {
        let message = format!("expected `items` to be an array, but it is {text}");
        return Ok(Err(failed(turn, run, "items_not_a_list", cut(&message))));
    };
    let array = text.trim_start_matches(json::is_space);
    let count = json::elements(array).take(ITEMS_MAX + 1).count();
    if count > ITEMS_MAX {
        let message = format!("expected at most {ITEMS_MAX} items, but there are more");
        return Ok(Err(failed(turn, run, "too_many_items", message)));
    }
    let iterations = Iterations {
        first_scope: ScopeNumber(run.record.scopes.opened_count + 1),
        collects_outputs: step.collects_outputs,
        is_sequential: step.concurrency == 1,
        total_count: u32::try_from(count).expect("items are bounded"),
        begun_count: 0,
        ended_count: 0,
        good_count: 0,
        failed_count: 0,
        collected_bytes: 0,
        is_too_large: false,
        resumable_count: 0,
        next_resumable: 0,
        is_begin_queued: true,
        is_stopped: false,
        is_timed_out: false,
        has_waited: false,
        steps_since_wait: 0,
    };
    if count == 0 {
        return Ok(Err(loop_result::of_empty(turn, run, step)));
    }
    run.record.scopes.opened_count += count as u64;
    active.input = items;
    active.state = ActivationState::Iterations(iterations);
    Ok(Ok(first))
}

/// The position of the first item; `None` if the text is not an array. A whole payload is as its sender wrote it.
fn first_item(text: &str, activation: u64) -> Option<ItemPosition> {
    let elements = json::inside_array(text.trim_start_matches(json::is_space))?;
    let offset = text.len() - elements.len();
    Some(ItemPosition {
        activation,
        index: 0,
        offset: u32::try_from(offset).expect("a payload is bounded"),
    })
}

/// Writes a bounded number of items to rows; after the last one, the first iteration begins.
pub(super) fn split(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    place: ItemPosition,
) -> TurnResult<()> {
    let ItemPosition {
        activation,
        mut index,
        offset,
    } = place;
    let definition = run.definition.clone();
    let active = run.activation(turn, activation)?;
    let Some(active) = active.filter(|active| active.ending.cancelled_with.is_none()) else {
        return Ok(());
    };
    let (_, state) = of(&definition.definition, active);
    let text = turn.payload(active.input)?;
    let mut rest = &text.as_str()[offset as usize..];
    for _ in 0..ITEMS_PER_BATCH_MAX {
        let Some((value, after)) = json::next_element(rest) else {
            break;
        };
        // After a resume, the items of iterations that succeeded are not needed.
        if index >= state.begun_count || resumable::is_kept(turn, run, state.scope(index))? {
            let value = Json::from_checked(value);
            turn.put::<Items>(&(run.number, activation, index), ItemRecord { value });
        }
        index += 1;
        rest = after;
    }
    let offset = text.as_str().len() - rest.len();
    let work = match json::next_element(rest) {
        None => Work::BeginIteration { activation },
        Some(_) => Work::SplitItems(ItemPosition {
            activation,
            index,
            offset: u32::try_from(offset).expect("a payload is bounded"),
        }),
    };
    queue.push(run.number, work);
    Ok(())
}

/// Continues a step that has failed or was cancelled (W89): the iterations that succeeded keep their results, the others
/// continue where they have stopped, as many at a time as may run concurrently. The items are those of the first entry.
pub(super) fn resume(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let (_, before) = of(&definition.definition, &active);
    let state = Iterations {
        ended_count: before.good_count,
        failed_count: 0,
        resumable_count: before.begun_count - before.good_count,
        next_resumable: 0,
        is_begin_queued: true,
        is_stopped: false,
        is_timed_out: false,
        ..before
    };
    active.state = ActivationState::Iterations(state);
    let (activation, input) = (active.number, active.input);
    run.put_back(active);
    if state.have_all_ended() {
        // Only what follows from the ends of its iterations has failed.
        return conclude(turn, queue, run, activation);
    }
    let text = turn.payload(input)?;
    let first = first_item(text.as_str(), activation).expect("the items are an array");
    queue.push(run.number, Work::SplitItems(first));
    Ok(())
}

/// Begins the next iteration, and then those that may run concurrently.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let definition = run.definition.clone();
    let (step, mut state) = of(&definition.definition, &active);
    if !may_begin(step, &state) || active.ending.cancelled_with.is_some() {
        state.is_begin_queued = false;
        active.state = ActivationState::Iterations(state);
        run.put_back(active);
        return Ok(());
    }
    let work = match take_resumable(turn, run, &active, &mut state)? {
        Some(index) => {
            let new = new_scope(step, &state, index);
            scope::open_again(turn, run, &active, new)?
        }
        None => {
            let new = new_scope(step, &state, state.begun_count);
            state.begun_count += 1;
            scope::open(run, &active, new)
        }
    };
    state.is_begin_queued = may_begin(step, &state);
    active.state = ActivationState::Iterations(state);
    run.put_back(active);
    if state.is_begin_queued {
        queue.push(run.number, Work::BeginIteration { activation });
    }
    queue.push(run.number, work);
    Ok(())
}

fn new_scope(step: &ForEachStep, state: &Iterations, index: u32) -> NewScope {
    NewScope {
        number: state.scope(index),
        block: step.body.block,
        position: index,
    }
}

/// Takes the first iteration that has stopped and has not continued yet; what is known of its failure is deleted.
fn take_resumable(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
    state: &mut Iterations,
) -> TurnResult<Option<u32>> {
    if state.resumable_count == 0 {
        return Ok(None);
    }
    let from = (run.number, state.scope(state.next_resumable));
    let mut first = None;
    turn.visit_from::<ResumableScopes>(&run.number, &from, |(_, scope), _| {
        first = Some(scope);
        ControlFlow::Break(())
    })?;
    let first = first.expect("an iteration that did not succeed is kept");
    let index = u32::try_from(first.0 - state.first_scope.0).expect("items are bounded");
    state.resumable_count -= 1;
    state.next_resumable = index + 1;
    let key = (run.number, active.number, index);
    if let Some(former) = turn.get::<IterationResults>(&key)? {
        turn.delete::<IterationResults>(&key);
        if let Some(error) = &former.error
            && state.collects_outputs
            && !state.is_too_large
        {
            let element = Json::error(&error.code, &error.message);
            state.collected_bytes -= element_bytes(&element);
        }
    }
    Ok(Some(index))
}

/// The step of an activation, and its iterations.
fn of<'d>(definition: &'d Definition, active: &Activation) -> (&'d ForEachStep, Iterations) {
    let ActivationState::Iterations(state) = active.state else {
        panic!("only a step with items has iterations");
    };
    (step_of(definition, active), state)
}

fn step_of<'d>(definition: &'d Definition, active: &Activation) -> &'d ForEachStep {
    match &definition.step(active.step).kind {
        StepKind::ForEach(step) => step,
        _ => panic!("only a step with items has iterations"),
    }
}

/// Whether another iteration may begin now.
fn may_begin(step: &ForEachStep, state: &Iterations) -> bool {
    let is_any_left = state.resumable_count > 0 || state.begun_count < state.total_count;
    let concurrency = match state.is_sequential {
        true => 1,
        false => u32::from(step.concurrency),
    };
    is_any_left && !state.is_stopped && state.open_count() < concurrency
}

/// Notes the end of an iteration. Another one begins, or the last one ends the step.
pub(super) fn note_end(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: EndedScope,
) -> TurnResult<()> {
    let EndedScope { scope, result } = ended;
    let Some(mut active) = run.take(turn, scope.opener)? else {
        return Ok(());
    };
    let definition = run.definition.clone();
    let (step, mut state) = of(&definition.definition, &active);
    let activation = active.number;
    state.ended_count += 1;
    state.has_waited |= scope.progress.has_waited;
    state.steps_since_wait = state.steps_since_wait.max(scope.progress.steps_since_wait);
    turn.delete::<Items>(&(run.number, activation, scope.position));
    let has_succeeded = !result.is_cancelled && is_good(&result.outcome);
    let iteration = Iteration {
        active: &active,
        step,
        index: scope.position,
        result,
    };
    let not_written = iteration.record(turn, run, &mut state)?;
    let is_exceeded = state.failed_count > step.tolerate.of(state.total_count);
    let stops = is_exceeded && step.on_failure == OnFailure::Cancel && !state.is_stopped;
    state.is_stopped |= stops;
    let continues = !state.is_begin_queued && may_begin(step, &state) && not_written.is_none();
    state.is_begin_queued |= continues;
    active.state = ActivationState::Iterations(state);
    let around = active.scope;
    run.put_back(active);
    if stops {
        cancel_open(turn, queue, run, activation)?;
    }
    if continues {
        queue.push(run.number, Work::BeginIteration { activation });
    }
    let ended = EndedLoop {
        activation,
        scope: around,
        step,
        state: &state,
    };
    match not_written {
        Some(not_written) => finish(queue, run, &ended, not_written),
        None if state.have_all_ended() => {
            let target_result = loop_result::of(turn, run, &ended)?;
            finish(queue, run, &ended, target_result);
        }
        None => {}
    }
    if has_succeeded {
        let former = FormerBranches::of_scope(scope.id.number);
        queue.push(run.number, Work::ForgetBranches(former));
    }
    Ok(())
}

/// The step, which is not decided, has taken too long (W70): no further iteration begins, and the open ones are cancelled.
pub(super) fn time_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let (_, mut state) = of(&definition.definition, &active);
    state.is_stopped = true;
    state.is_timed_out = true;
    active.state = ActivationState::Iterations(state);
    let activation = active.number;
    run.put_back(active);
    match state.have_all_ended() {
        true => conclude(turn, queue, run, activation),
        false => Ok(cancel_open(turn, queue, run, activation)?),
    }
}

/// Ends a step whose iterations have all ended.
fn conclude(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let active = run.activation(turn, activation)?;
    let active = active.expect("the step is active").clone();
    let definition = run.definition.clone();
    let (step, state) = of(&definition.definition, &active);
    let scope = active.scope;
    let ended = EndedLoop {
        activation,
        scope,
        step,
        state: &state,
    };
    let target_result = loop_result::of(turn, run, &ended)?;
    finish(queue, run, &ended, target_result);
    Ok(())
}

/// Ends a step whose iterations are over. The rows of its items are deleted when the run leaves it.
fn finish(
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ended: &EndedLoop<'_>,
    target_result: TargetResult,
) {
    let (activation, state) = (ended.activation, ended.state);
    run.add_steps(ended.scope, state.has_waited, state.steps_since_wait);
    let target_result = TargetResult {
        from: Awaited::Branches,
        ..target_result
    };
    let work = Work::FinishStep {
        activation,
        target_result,
    };
    queue.push(run.number, work);
}

/// Cancels the iterations that are open, the first one first.
fn cancel_open(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> Result<(), StoreError> {
    run.look_up_scopes(turn)?;
    let open = run.open_scopes();
    let own = open.filter(|open| open.opener == activation);
    let own: Vec<ScopeNumber> = own.map(|open| open.id.number).collect();
    for scope in own.into_iter().rev() {
        queue.push(run.number, Work::CancelScope { scope });
    }
    Ok(())
}

/// Deletes a bounded number of item rows of a step that the run leaves, and state writes that were not joined.
pub(super) fn forget(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    former: FormerItems,
) -> TurnResult<()> {
    let end = former.total_count.min(former.index + ITEMS_PER_BATCH_MAX);
    for index in former.index..end {
        let key = (run.number, former.activation, index);
        let scope = ScopeNumber(former.first_scope.0 + u64::from(index));
        if let Some(result) = turn.get::<IterationResults>(&key)? {
            if result.has_written {
                state::forget(turn, run, scope)?;
            }
            turn.delete::<IterationResults>(&key);
        }
        if turn.get::<Items>(&key)?.is_some() {
            turn.delete::<Items>(&key);
        }
        if former.has_resumable && resumable::is_kept(turn, run, scope)? {
            let stopped = FormerBranches::of_scope(scope);
            queue.push(run.number, Work::ForgetBranches(stopped));
        }
    }
    if end < former.total_count {
        let rest = FormerItems {
            index: end,
            ..former
        };
        queue.push(run.number, Work::ForgetItems(rest));
    }
    Ok(())
}
