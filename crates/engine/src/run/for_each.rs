//! Steps that execute a block for each element of an array (W57).
//!
//! The elements are written to separate rows first, so that the cost of an iteration does not depend on their number.
//! After an iteration, only what the end of the step needs is kept.

use super::branches::EndedScope;
use super::failure::{self, error_in, failed};
use super::loop_result::{self, EndedLoop};
use super::outcome::is_good;
use super::render::{self, DataContext, Mapped};
use super::scope::{self, NewScope};
use super::state::{self, Writers};
use crate::definition::{Definition, ForEachStep, OnFailure, StepKind};
use crate::ids::ScopeNumber;
use crate::json::{self, Json};
use crate::limits::{
    ITEM_CODE_BYTES_MAX, ITEM_MESSAGE_BYTES_MAX, ITEMS_MAX, ITEMS_PER_BATCH_MAX, PAYLOAD_BYTES_MAX,
};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, BranchResult, EventKind, FormerBranches, FormerItems,
    ItemPosition, ItemRecord, Items, IterationResult, IterationResults, Iterations, States,
    TargetResult, TaskError, Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

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
    // A whole payload is as its sender wrote it.
    let array = text.trim_start_matches(json::is_space);
    let Some(elements) = json::inside_array(array) else {
        let message = format!("expected `items` to be an array, but it is {text}");
        return Ok(Err(failed(turn, run, "items_not_a_list", cut(&message))));
    };
    let offset = text.len() - elements.len();
    let count = json::elements(array).take(ITEMS_MAX + 1).count();
    if count > ITEMS_MAX {
        let message = format!("expected at most {ITEMS_MAX} items, but there are more");
        return Ok(Err(failed(turn, run, "too_many_items", message)));
    }
    let iterations = Iterations {
        first_scope: ScopeNumber(run.record.scopes_count + 1),
        total_count: u32::try_from(count).expect("items are bounded"),
        begun_count: 0,
        ended_count: 0,
        good_count: 0,
        failed_count: 0,
        collected_bytes: 0,
        is_too_large: false,
        is_begin_queued: true,
        is_stopped: false,
        is_timed_out: false,
        has_waited: false,
        steps_since_wait: 0,
    };
    if count == 0 {
        return Ok(Err(loop_result::of_empty(turn, run, step)));
    }
    run.record.scopes_count += count as u64;
    active.input = items;
    active.state = ActivationState::Iterations(iterations);
    Ok(Ok(ItemPosition {
        activation: active.number,
        index: 0,
        offset: u32::try_from(offset).expect("a payload is bounded"),
    }))
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
    let active = run.activation(turn, activation)?;
    let Some(active) = active.filter(|active| active.cancelled_with.is_none()) else {
        return Ok(());
    };
    let text = turn.payload(active.input)?;
    let mut rest = &text.as_str()[offset as usize..];
    for _ in 0..ITEMS_PER_BATCH_MAX {
        let Some((value, after)) = json::next_element(rest) else {
            break;
        };
        let value = Json::from_checked(value);
        turn.put::<Items>(&(run.number, activation, index), ItemRecord { value });
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
    if !may_begin(step, &state) || active.cancelled_with.is_some() {
        state.is_begin_queued = false;
        active.state = ActivationState::Iterations(state);
        run.put_back(active);
        return Ok(());
    }
    let new = NewScope {
        number: state.scope(state.begun_count),
        block: step.body.block,
        position: state.begun_count,
    };
    state.begun_count += 1;
    state.is_begin_queued = may_begin(step, &state);
    active.state = ActivationState::Iterations(state);
    let work = scope::open(run, &active, new);
    run.put_back(active);
    if state.is_begin_queued {
        queue.push(run.number, Work::BeginIteration { activation });
    }
    queue.push(run.number, work);
    Ok(())
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
    let open_count = state.begun_count - state.ended_count;
    let is_any_left = state.begun_count < state.total_count;
    is_any_left && !state.is_stopped && open_count < u32::from(step.concurrency)
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
    let (step_index, around) = (active.step, active.scope);
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
    let former = FormerBranches {
        first_scope: scope.id.number,
        step: step_index,
    };
    queue.push(run.number, Work::ForgetBranches(former));
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
    let (step, mut state) = of(&definition.definition, &active);
    state.is_stopped = true;
    state.is_timed_out = true;
    active.state = ActivationState::Iterations(state);
    let (activation, scope) = (active.number, active.scope);
    run.put_back(active);
    if !state.have_all_ended() {
        return Ok(cancel_open(turn, queue, run, activation)?);
    }
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

/// An iteration that has ended.
struct Iteration<'a> {
    active: &'a Activation,
    step: &'a ForEachStep,
    index: u32,
    result: BranchResult,
}

impl Iteration<'_> {
    /// Counts the iteration, and keeps what the end of the step needs. With a concurrency of 1, its state writes go to the
    /// scope of the step; if they cannot, the step ends with the returned result.
    fn record(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        state: &mut Iterations,
    ) -> TurnResult<Option<TargetResult>> {
        if self.result.is_cancelled {
            return Ok(None);
        }
        let kind = EventKind::IterationEnded {
            index: self.index,
            outcome: self.result.outcome.clone(),
        };
        run.note(self.active, kind);
        let scope = state.scope(self.index);
        let mut kept = IterationResult {
            outcome: self.result.outcome.clone(),
            output: None,
            error: None,
            is_retryable: self.result.is_retryable,
            has_written: false,
        };
        if is_good(&self.result.outcome) {
            state.good_count += 1;
            if self.step.concurrency == 1 {
                let writers = Writers {
                    into: self.active.scope,
                    branches: vec![scope],
                    merge: &self.step.merge,
                };
                if let Err(not_written) = state::join(turn, run, &writers)? {
                    return Ok(Some(not_written.ends_step(turn, run)));
                }
            } else {
                kept.has_written = turn.get::<States>(&(run.number, scope))?.is_some();
            }
            kept.output = self.collect(turn, state)?;
        } else {
            state.failed_count += 1;
            kept.error = Some(self.error(turn, state)?);
        }
        if kept.has_written || kept.output.is_some() || kept.error.is_some() {
            let key = (run.number, self.active.number, self.index);
            turn.put::<IterationResults>(&key, kept);
        }
        Ok(None)
    }

    /// The output, if the step collects it and there is room.
    fn collect(
        &self,
        turn: &mut Turn<'_, '_>,
        state: &mut Iterations,
    ) -> Result<Option<Json>, StoreError> {
        if !self.step.collects_outputs || state.is_too_large {
            return Ok(None);
        }
        let output = match self.result.output {
            Some(output) => turn.payload(output)?,
            None => Json::null(),
        };
        Ok(count_element(state, &output).then_some(output))
    }

    /// Why it failed.
    fn error(
        &self,
        turn: &mut Turn<'_, '_>,
        state: &mut Iterations,
    ) -> Result<TaskError, StoreError> {
        let BranchResult {
            outcome,
            output,
            reason,
            ..
        } = &self.result;
        let known = match output {
            Some(output) => error_in(&turn.payload(*output)?),
            None => None,
        };
        let code = failure::cause_of_block(&self.result).code;
        // The output of a block can be that of a step that failed earlier.
        let known = known.filter(|known| code.as_ref().is_none_or(|code| *code == known.code));
        let error = known.unwrap_or_else(|| TaskError {
            code: code.unwrap_or_else(|| outcome.to_string()),
            message: reason.clone().unwrap_or_default(),
        });
        let code = beginning(&error.code, ITEM_CODE_BYTES_MAX);
        let message = beginning(&error.message, ITEM_MESSAGE_BYTES_MAX);
        if self.step.collects_outputs {
            count_element(state, &Json::error(&code, &message));
        }
        Ok(TaskError { code, message })
    }
}

/// The beginning of a text, of at most that many bytes.
fn beginning(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

/// Counts an element of the array of outputs; false if that is too large.
fn count_element(state: &mut Iterations, element: &Json) -> bool {
    let separator = 1;
    let bytes = state.collected_bytes as usize + element.as_str().len() + separator;
    state.is_too_large |= bytes > PAYLOAD_BYTES_MAX;
    if !state.is_too_large {
        state.collected_bytes = u32::try_from(bytes).expect("a payload is bounded");
    }
    !state.is_too_large
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
        if let Some(result) = turn.get::<IterationResults>(&key)? {
            if result.has_written {
                let scope = ScopeNumber(former.first_scope.0 + u64::from(index));
                state::forget(turn, run, scope)?;
            }
            turn.delete::<IterationResults>(&key);
        }
        if turn.get::<Items>(&key)?.is_some() {
            turn.delete::<Items>(&key);
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
