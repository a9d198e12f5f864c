//! Steps that execute a block for each element of an array (W57).
//!
//! The elements are written to separate rows first, so that an iteration costs the same however many there are. Of an
//! iteration that has ended, only what the end of the step needs is kept.

use super::branches::EndedBranch;
use super::failure::{error_in, failed};
use super::items_result;
use super::outcome::is_good;
use super::render::{self, DataContext, Mapped};
use super::scope::{self, NewScope};
use super::state::{self, Writers};
use crate::definition::{Definition, ForEachStep, OnFailure, StepKind};
use crate::ids::ScopeNumber;
use crate::json::{self, Json};
use crate::limits::{ITEM_MESSAGE_BYTES_MAX, ITEMS_MAX, ITEMS_PER_WORK_MAX, PAYLOAD_BYTES_MAX};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, BranchResult, EventKind, FormerBranches, FormerItems,
    ItemRecord, ItemResult, ItemResults, Items, ItemsPlace, Iterations, States, TargetResult,
    TaskError, Work,
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

/// Resolves and counts the items; returns the place of the first one, or what the step ends with.
fn begin_iterations(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Activation,
) -> TurnResult<Result<ItemsPlace, TargetResult>> {
    let definition = run.definition.clone();
    let step = step_of(&definition.definition, active);
    let context = DataContext::of(active.scope);
    let items = match render::stored(turn, run, context, &step.items)? {
        Ok(items) => items,
        Err(refused) => {
            let (code, message) = (refused.code(Mapped::Items), refused.message(Mapped::Items));
            return Ok(Err(failed(turn, run, code, cut(&message))));
        }
    };
    let text = turn.payload(items)?;
    let text = text.as_str();
    let Some(elements) = json::inside_array(text) else {
        let message = format!("expected `items` to be an array, but it is {text}");
        return Ok(Err(failed(turn, run, "items_not_a_list", cut(&message))));
    };
    let offset = text.len() - elements.len();
    let count = json::elements(text).take(ITEMS_MAX + 1).count();
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
        is_beginning: true,
        is_stopped: false,
        has_waited: false,
        steps_since_wait: 0,
    };
    if count == 0 {
        return Ok(Err(items_result::of_none(turn, run, step)));
    }
    run.record.scopes_count += count as u64;
    active.input = items;
    active.state = ActivationState::Items(iterations);
    Ok(Ok(ItemsPlace {
        activation: active.number,
        index: 0,
        offset: u32::try_from(offset).expect("a payload is bounded"),
    }))
}

/// Writes a bounded number of items to rows; behind the last one, the first iteration begins.
pub(super) fn split(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    place: ItemsPlace,
) -> TurnResult<()> {
    let ItemsPlace {
        activation,
        mut index,
        offset,
    } = place;
    let Some(active) = run.activation(turn, activation)? else {
        return Ok(());
    };
    let text = turn.payload(active.input)?;
    let mut rest = &text.as_str()[offset as usize..];
    for _ in 0..ITEMS_PER_WORK_MAX {
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
        None => Work::BeginItem { activation },
        Some(_) => Work::SplitItems(ItemsPlace {
            activation,
            index,
            offset: u32::try_from(offset).expect("a payload is bounded"),
        }),
    };
    queue.push(run.number, work);
    Ok(())
}

/// Begins the next iteration, and after it those that may run beside it.
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
    if !may_begin(step, &state) {
        state.is_beginning = false;
        active.state = ActivationState::Items(state);
        run.put_back(active);
        return Ok(());
    }
    let new = NewScope {
        number: state.scope(state.begun_count),
        block: step.body.block,
        position: state.begun_count,
    };
    state.begun_count += 1;
    state.is_beginning = may_begin(step, &state);
    active.state = ActivationState::Items(state);
    let work = scope::open(run, &active, new);
    run.put_back(active);
    if state.is_beginning {
        queue.push(run.number, Work::BeginItem { activation });
    }
    queue.push(run.number, work);
    Ok(())
}

/// The step of an activation, and its iterations.
fn of<'d>(definition: &'d Definition, active: &Activation) -> (&'d ForEachStep, Iterations) {
    let ActivationState::Items(state) = active.state else {
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
    ended: EndedBranch,
) -> TurnResult<()> {
    let EndedBranch { scope, result } = ended;
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
    let continues = !state.is_beginning && may_begin(step, &state) && not_written.is_none();
    state.is_beginning |= continues;
    active.state = ActivationState::Items(state);
    let (step_index, around) = (active.step, active.scope);
    run.put_back(active);
    if stops {
        cancel_open(turn, queue, run, activation)?;
    }
    if continues {
        queue.push(run.number, Work::BeginItem { activation });
    }
    let target_result = match not_written {
        Some(not_written) => Some(not_written),
        None if state.are_over() => Some(items_result::of(turn, run, activation)?),
        None => None,
    };
    if let Some(target_result) = target_result {
        // The steps of an iteration count as its parent's, as those of a branch do (W16).
        if state.has_waited {
            run.end_wait(around);
        }
        run.progress(around).steps_since_wait += state.steps_since_wait;
        let former = FormerItems {
            activation,
            first_scope: state.first_scope,
        };
        queue.push(run.number, Work::ForgetItems(former));
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
    let former = FormerBranches {
        first_scope: scope.id.number,
        step: step_index,
    };
    queue.push(run.number, Work::ForgetBranches(former));
    Ok(())
}

/// An iteration that has ended.
struct Iteration<'a> {
    active: &'a Activation,
    step: &'a ForEachStep,
    index: u32,
    result: BranchResult,
}

impl Iteration<'_> {
    /// Counts the iteration, and keeps what the end of the step needs of it. If the iterations run one after the other, what
    /// it wrote goes to the scope of the step; if it cannot, the step ends with what is returned.
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
        let mut kept = ItemResult {
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
            turn.put::<ItemResults>(&key, kept);
        }
        Ok(None)
    }

    /// The output, if the step collects it and there is room.
    fn collect(
        &self,
        turn: &mut Turn<'_, '_>,
        state: &mut Iterations,
    ) -> Result<Option<Json>, StoreError> {
        if !self.step.collects || state.is_too_large {
            return Ok(None);
        }
        let output = match self.result.output {
            Some(output) => turn.payload(output)?,
            None => Json::null(),
        };
        Ok(make_room(state, &output).then_some(output))
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
        let TaskError { code, message } = known.unwrap_or_else(|| TaskError {
            code: outcome.to_string(),
            message: reason.clone().unwrap_or_default(),
        });
        let end = message.floor_char_boundary(ITEM_MESSAGE_BYTES_MAX);
        let message = message[..end].to_owned();
        if self.step.collects {
            make_room(state, &Json::error(&code, &message));
        }
        Ok(TaskError { code, message })
    }
}

/// Counts an element of the array of outputs; false if that is too large.
fn make_room(state: &mut Iterations, element: &Json) -> bool {
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

/// Deletes a bounded number of rows of a step that was left, and the writes of iterations that nothing joins.
pub(super) fn forget(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    former: FormerItems,
) -> TurnResult<()> {
    let FormerItems {
        activation,
        first_scope,
    } = former;
    let results = turn.list::<ItemResults>(&(run.number, activation), ITEMS_PER_WORK_MAX)?;
    let items = turn.keys::<Items>(&(run.number, activation), ITEMS_PER_WORK_MAX)?;
    let is_done = results.len().max(items.len()) < ITEMS_PER_WORK_MAX;
    for (key, result) in results {
        let (_, _, index) = key;
        if result.has_written {
            state::forget(turn, run, ScopeNumber(first_scope.0 + u64::from(index)))?;
        }
        turn.delete::<ItemResults>(&key);
    }
    for key in items {
        turn.delete::<Items>(&key);
    }
    if !is_done {
        queue.push(run.number, Work::ForgetItems(former));
    }
    Ok(())
}
