//! Entering a step.

use super::evaluation::Evaluation;
use super::failure::failed;
use super::finish_step::{Left, exit_step};
use super::outcome::{destination, name};
use super::render::{DataContext, EXPRESSION_FAILED};
use super::{
    approval, attributes, branches, cursor, emit, for_each, loop_warning, run_timeout, scope,
    signal_wait, state, step_input, switch, timeout_timers, timer_step,
};
use crate::definition::{RunStep, StepIndex, StepKind};
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{Activation, EventKind, StepResult, StepResults, TargetResult, Work};
use crate::turn::{Draft, LoadedRun, NewVisit, Turn, TurnResult};
use std::sync::Arc;

/// A step to enter, and the scope that enters it.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) scope: ScopeNumber,
    pub(super) step: StepIndex,
}

/// A step is entered: its mapping is resolved once, for all attempts.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    entry: Entry,
) -> TurnResult<()> {
    if is_late(run, entry) || !is_allowed(turn, queue, run, entry)? {
        return Ok(());
    }
    if !begin_run(turn, queue, run)? {
        return Ok(());
    }
    let visit = next_visit(turn, run, entry)?;
    let active = run.activate(turn.now_ms(), visit);
    begin(turn, queue, run, active)
}

/// Begins a run that has not begun, before it enters its first step. False if it cannot begin.
pub(super) fn begin_run(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> Result<bool, StoreError> {
    if run.record.has_begun() {
        return Ok(true);
    }
    if !run.record.has_taken_over() {
        if let Err(reason) = state::begin(turn, run)? {
            queue.push(run.number, state::refuse_begin(reason));
            return Ok(false);
        }
        attributes::note_state(turn, run)?;
    }
    run.record.began_at_ms = Some(turn.now_ms());
    run_timeout::begin(turn, run);
    Ok(true)
}

/// Whether the work was deferred, and the end of the run was decided meanwhile: then only its handler is entered (W83).
fn is_late(run: &LoadedRun, entry: Entry) -> bool {
    let is_of_main_phase = !run.definition.definition.is_handler(entry.step);
    entry.scope == ScopeNumber::ROOT && run.record.fixed_end.is_some() && is_of_main_phase
}

/// Whether a step of the scope may be entered now; counts it if so (W16, W78).
pub(super) fn is_allowed(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    entry: Entry,
) -> Result<bool, StoreError> {
    let Entry { scope, step } = entry;
    let is_scope_open = scope == ScopeNumber::ROOT || run.is_scope_live(turn, scope)?;
    if !is_scope_open || !run.record.status.is_open() {
        return Ok(false);
    }
    let is_within = queue.count_step(turn, run, scope) && queue.count_entry(run, scope);
    if !is_within && run.record.fixed_end.is_none() {
        cursor::note_refused(run, scope, step);
    }
    Ok(is_within)
}

/// Enters a step again at which the run, or a scope below it, has stopped (W89).
pub(super) fn enter_again(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    visit: NewVisit,
) -> TurnResult<()> {
    let entry = Entry {
        scope: visit.scope,
        step: visit.step,
    };
    if is_allowed(turn, queue, run, entry)? {
        let active = run.activate(turn.now_ms(), visit);
        begin(turn, queue, run, active)?;
    }
    Ok(())
}

/// The visit with which the step is entered next.
pub(super) fn next_visit(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    entry: Entry,
) -> Result<NewVisit, StoreError> {
    let former = former_result(turn, run, entry)?;
    Ok(NewVisit {
        scope: entry.scope,
        step: entry.step,
        visit: 1 + former.map_or(0, |former| former.visit),
    })
}

/// Begins a visit.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let (scope, step) = (active.scope, active.step);
    let entry = Entry { scope, step };
    run.note(&active, EventKind::StepStarted);
    loop_warning::note_visit(run, &active);
    let definition = run.definition.clone();
    let entered = definition.definition.step(step);
    let may_be_kept = active.visit > 1 || run.record.may_repeat_any_step();
    if may_be_kept && entered.is_resumable() {
        scope::hide_former(turn, queue, run, entry)?;
    }
    if let Some(target_result) = ended_by_condition(turn, run, entry)? {
        // There was no attempt: nothing is set, and there is no output.
        let left = Left {
            active: &active,
            destination: destination(&definition.definition, entered, &target_result.outcome),
            target_result,
        };
        return exit_step(turn, queue, run, left);
    }
    timeout_timers::start_total(turn, run, &mut active);
    match &entered.kind {
        StepKind::Run(run_step) => {
            let work = enter_run_step(turn, run, active, run_step)?;
            queue.push(run.number, work);
        }
        StepKind::Wait(wait) => {
            let ended = signal_wait::begin(turn, run, &mut active, wait)?;
            wait_or_finish(queue, run, active, ended);
        }
        StepKind::Approval(step) => {
            let ended = approval::begin(turn, run, &mut active, step)?;
            wait_or_finish(queue, run, active, ended);
        }
        StepKind::Parallel(_) | StepKind::Block(_) => branches::enter(queue, run, active),
        StepKind::ForEach(_) => for_each::enter(turn, queue, run, active)?,
        StepKind::Set => {
            let target_result = TargetResult::of_engine(name::of(name::SUCCESS));
            queue.push(run.number, finish(run, active, target_result));
        }
        StepKind::Timer(step) => {
            let ended = timer_step::begin(turn, run, &mut active, step)?;
            wait_or_finish(queue, run, active, ended);
        }
        StepKind::Emit(step) => {
            let target_result = emit::emit(turn, run, &active, step)?;
            queue.push(run.number, finish(run, active, target_result));
        }
        StepKind::Switch(_) => switch::enter(turn, queue, run, &active)?,
    }
    Ok(())
}

/// What a step ends with if `skipIf` is true or cannot be evaluated (W65); `None` if the step is executed.
fn ended_by_condition(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    entry: Entry,
) -> Result<Option<TargetResult>, StoreError> {
    let definition = run.definition.clone();
    let Some(condition) = &definition.definition.step(entry.step).skip_if else {
        return Ok(None);
    };
    let is_skipped =
        Evaluation::with(DataContext::of(entry.scope)).is_true(turn, run, condition)?;
    Ok(match is_skipped {
        Ok(false) => None,
        Ok(true) => Some(TargetResult::of_engine(name::of(name::SKIPPED))),
        Err(reason) => Some(failed(turn, run, EXPRESSION_FAILED, reason)),
    })
}

/// Puts back a step that waits, or queues the work that finishes it.
fn wait_or_finish(
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    active: Draft<Activation>,
    ended: Option<TargetResult>,
) {
    match ended {
        Some(target_result) => queue.push(run.number, finish(run, active, target_result)),
        None => run.put_back(active),
    }
}

/// The work that finishes a step that waits for nothing.
fn finish(run: &mut LoadedRun, active: Draft<Activation>, target_result: TargetResult) -> Work {
    let activation = active.number;
    run.put_back(active);
    Work::FinishStep {
        activation,
        target_result,
    }
}

/// The result of the last visit to the step in this scope, if there was one.
fn former_result(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    entry: Entry,
) -> Result<Option<Arc<StepResult>>, StoreError> {
    let Entry { scope, step } = entry;
    let may_repeat = run.definition.definition.step(step).may_repeat;
    if !may_repeat && !run.record.may_repeat_any_step() {
        return Ok(None);
    }
    turn.get::<StepResults>(&(run.number, scope, step))
}

fn enter_run_step(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    step: &RunStep,
) -> TurnResult<Work> {
    match step_input::map(turn, run, active.scope, step.call.input.as_ref())? {
        Ok(input) => {
            let activation = active.number;
            active.input = input;
            run.put_back(active);
            Ok(Work::Execute { activation })
        }
        Err(refused) => {
            // A fallback without a mapping gets the mapped input, which does not exist.
            active.input = run.store_payload(turn, Json::null());
            let target_result = refused.ends_call(turn, run);
            Ok(finish(run, active, target_result))
        }
    }
}
