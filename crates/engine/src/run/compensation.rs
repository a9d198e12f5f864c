//! Undoing what steps have done: the list of compensations of a run (W82), and their execution, one at a time and
//! newest first, at the end of the run or before the work of a block is dropped (W82a).

use super::failure::{self, is_failure};
use super::outcome::{is_good, name};
use super::render::{self, DataContext, Mapped, MappingRefused};
use super::{phase, timeout_timers};
use crate::definition::{CallRole, StepKind};
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::limits::{COMPENSATIONS_MAX, PAYLOAD_BYTES_MAX};
use crate::message::cut_to;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, CompensationPlace, CompensationRecord, Compensations, Dropped,
    EventKind, IterationResults, JoinDecision, PayloadRef, Phase, RunRecord, ScopePath,
    TargetResult, UndoOwner, Undone, Work,
};
use crate::turn::{Draft, LoadedRun, NewVisit, Turn, TurnResult};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The code of a step that fails because the list is full.
const TOO_MANY: &str = "compensations_too_many";
/// The code of a compensation whose input could not be resolved.
const BAD_INPUT: &str = "bad_compensation_input";
/// Why an input could not be resolved, as far as it is kept. In bytes.
const REASON_BYTES_MAX: usize = 512;

/// Why a call may not begin: its compensation would exceed the limit of the list.
pub(super) fn refusal(run: &LoadedRun, active: &Activation) -> Option<(&'static str, String)> {
    let step = run.definition.definition.step(active.step);
    step.compensation(active.call)?;
    // A poll continues a call.
    let is_full = run.record.compensations.open_count >= COMPENSATIONS_MAX;
    (is_full && !active.is_call_open).then(|| {
        let message = format!(
            "expected at most {COMPENSATIONS_MAX} compensations, but the run has as many already"
        );
        (TOO_MANY, message)
    })
}

/// Enters an attempt that has ended into the list, if it has a compensation and has done something.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
    target_result: &TargetResult,
) -> TurnResult<()> {
    let made = match is_failure(&target_result.outcome) {
        true => Made::Attempt,
        false => Made::Success(target_result.output),
    };
    enter_made(turn, run, active, made)?;
    close_call(active);
    Ok(())
}

/// Notes the end of the attempt. A call that cannot be undone is never open, so that its activation stays as it is.
fn close_call(active: &mut Draft<Activation>) {
    if active.is_call_open {
        active.is_call_open = false;
    }
}

/// Enters an attempt that has ended although it was cancelled or took too long: a success counts all the same (W54).
pub(super) fn enter_late(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &mut Draft<Activation>,
    target_result: &TargetResult,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let is_poll = step.poll(active.call).is_some();
    let is_pending = is_poll && target_result.outcome.as_str() == name::PENDING;
    let is_cancelled = target_result.outcome.as_str() == name::CANCELLED;
    let made = match is_pending || is_cancelled || is_failure(&target_result.outcome) {
        true => Made::Attempt,
        false => Made::Success(target_result.output),
    };
    enter_made(turn, run, active, made)?;
    close_call(active);
    Ok(())
}

/// Enters an attempt that is cancelled into the list, if it may have done something.
pub(super) fn enter_cancelled(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> TurnResult<()> {
    enter_made(turn, run, active, Made::Attempt)
}

/// What an attempt has done.
#[derive(Clone, Copy)]
enum Made {
    /// It has succeeded, with this output.
    Success(Option<PayloadRef>),
    /// Nothing for sure: it may have done something, if its call was made.
    Attempt,
}

fn enter_made(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    made: Made,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let Some((call, compensation)) = step.compensation(active.call) else {
        return Ok(());
    };
    let output = match made {
        Made::Success(output) => output,
        Made::Attempt if compensation.of_attempted && active.is_call_open => None,
        Made::Attempt => return Ok(()),
    };
    let input = match &compensation.call.input {
        Some(template) => {
            let context = DataContext::of(active.scope).with_result(output);
            let rendered = render::stored(turn, run, context, template)?;
            rendered.map_err(|refused| refused.message(Mapped::Input))
        }
        None => default_input(turn, run, active, output)?,
    };
    let input = input.map_err(|reason| cut_to(&reason, REASON_BYTES_MAX));
    let record = CompensationRecord {
        scope: run.scope_id(active.scope),
        step: active.step,
        visit: active.visit,
        call,
        input,
    };
    let counts = &mut run.record.compensations;
    let place = CompensationPlace::of(counts.entered_count);
    counts.entered_count += 1;
    counts.open_count += 1;
    turn.put::<Compensations>(&(run.number, place), record);
    Ok(())
}

/// The input of a compensation without a mapping, unless it is too large.
fn default_input(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    output: Option<PayloadRef>,
) -> Result<Result<PayloadRef, String>, StoreError> {
    let input = turn.payload(active.input)?;
    let output = match output {
        Some(output) => turn.payload(output)?,
        None => Json::null(),
    };
    let by = match active.call {
        CallRole::Fallback => ",\"by\":\"fallback\"",
        CallRole::Target
        | CallRole::Compensation
        | CallRole::FallbackCompensation
        | CallRole::OnCancel => "",
    };
    let (input, output) = (input.as_str(), output.as_str());
    let text = format!("{{\"input\":{input},\"output\":{output}{by}}}");
    if text.len() > PAYLOAD_BYTES_MAX {
        let refused = MappingRefused::Made(text.len());
        return Ok(Err(refused.message(Mapped::Input)));
    }
    Ok(Ok(run.store_payload(turn, Json::from_checked(text))))
}

/// Which blocks a step that ends with `target_result` drops, if any; their work is undone first.
pub(super) fn dropped_by(
    run: &LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
    is_retried: bool,
) -> Option<Dropped> {
    let step = run.definition.definition.step(active.step);
    let is_good = is_good(&target_result.outcome);
    match &step.kind {
        StepKind::Block(_) if is_retried => Some(Dropped::All),
        _ if !is_good && step.undoes_blocks() => Some(Dropped::All),
        StepKind::Parallel(_) if is_good || winner(active).is_some() => Some(Dropped::Failed),
        StepKind::ForEach(_) if is_good => Some(Dropped::Failed),
        StepKind::Parallel(_) | StepKind::ForEach(_) | StepKind::Block(_) => Some(Dropped::Nothing),
        _ => None,
    }
}

/// The position of the branch that alone has decided how its step ends.
fn winner(active: &Activation) -> Option<u32> {
    match active.state.branches()?.decision {
        Some(JoinDecision::First(position)) => Some(position),
        _ => None,
    }
}

/// Whether a block of a step that ends well may have failed.
fn has_any_failed(active: &Activation) -> bool {
    match &active.state {
        ActivationState::Branches(branches) => {
            winner(active).is_some() || branches.good_count < branches.begun_count
        }
        ActivationState::Iterations(iterations) => iterations.failed_count > 0,
        _ => false,
    }
}

/// Whether anything is to be undone of what a step drops, or is being undone for it already.
pub(super) fn is_due(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    dropped: Dropped,
) -> TurnResult<bool> {
    let is_made = is_made_for(turn, run, active.number)?;
    Ok(is_made || newest_below(turn, run, active, dropped)?.is_some())
}

/// The newest compensation of the run.
fn newest(turn: &mut Turn<'_, '_>, run: &LoadedRun) -> Result<Option<Found>, StoreError> {
    if run.record.compensations.open_count == 0 {
        return Ok(None);
    }
    let newest = turn
        .list::<Compensations>(&run.number, 1)?
        .into_iter()
        .next();
    Ok(newest.map(|((_, place), record)| (place, record)))
}

/// A compensation and its place.
type Found = (CompensationPlace, Arc<CompensationRecord>);

/// The newest compensation of the work that a step drops.
fn newest_below(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    dropped: Dropped,
) -> TurnResult<Option<Found>> {
    let drops_all = match dropped {
        Dropped::All => true,
        Dropped::Failed if has_any_failed(active) => false,
        Dropped::Failed | Dropped::Nothing => return Ok(None),
    };
    if run.record.compensations.open_count == 0 {
        return Ok(None);
    }
    let around = run.scope_id(active.scope).path;
    let mut below = Vec::new();
    turn.visit::<Compensations>(&run.number, |(_, place), record| {
        if place.order() < active.compensations_before {
            return ControlFlow::Break(());
        }
        let Some(position) = position_below(&around, active, &record.scope.path) else {
            return ControlFlow::Continue(());
        };
        below.push((place, position, record));
        // Which have failed can only be looked up afterwards.
        match drops_all {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    for (place, position, record) in below {
        if drops_all || has_failed(turn, run, active, position)? {
            return Ok(Some((place, record)));
        }
    }
    Ok(None)
}

/// The position, below a step, of the block that contains a scope; `None` if the scope is not below the step.
fn position_below(around: &ScopePath, active: &Activation, path: &ScopePath) -> Option<u32> {
    let below = path.0.strip_prefix(&around.0[..])?.first()?;
    let is_below = (below.step, below.visit) == (active.step, active.visit);
    is_below.then_some(below.position)
}

/// Whether the block at a position below a step failed, was cancelled, or lost against another one.
fn has_failed(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
    position: u32,
) -> TurnResult<bool> {
    Ok(match &active.state {
        ActivationState::Branches(branches) => match winner(active) {
            Some(winner) => winner != position,
            None => branches.good & (1 << position) == 0,
        },
        _ => {
            let key = (run.number, active.number, position);
            let result = turn.get::<IterationResults>(&key)?;
            result.is_some_and(|result| result.error.is_some())
        }
    })
}

/// Begins the newest compensation; when none is left, its owner continues.
pub(super) fn next(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    owner: UndoOwner,
) -> TurnResult<()> {
    match owner {
        UndoOwner::Run => next_of_run(turn, queue, run),
        UndoOwner::Step(activation) => next_of_step(turn, queue, run, activation),
    }
}

fn next_of_run(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    let Some(end) = run.record.fixed_end.clone() else {
        return Ok(());
    };
    if is_any_active(turn, run)? {
        return Ok(());
    }
    let definition = &run.definition.definition;
    // What a handler leaves behind is undone to its end, and nothing else.
    let is_wanted = end.phase == Phase::Compensating && definition.compensates_at(end.terminal);
    let found = match is_wanted {
        true => newest(turn, run)?,
        false => None,
    };
    match found {
        Some(found) => {
            let due = DueCompensation {
                owner: UndoOwner::Run,
                scope: ScopeNumber::ROOT,
                found,
            };
            begin(turn, queue, run, due);
        }
        None => queue.push(run.number, Work::NextPhase),
    }
    Ok(())
}

fn next_of_step(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(active) = run.take(turn, activation)? else {
        return Ok(());
    };
    // A resume undoes the rest for a step that was cancelled.
    let undoing = active.ending.undoing.as_ref();
    let undoing = undoing.filter(|_| active.ending.cancelled_with.is_none());
    let dropped = undoing.map(|undoing| undoing.dropped);
    let is_made = is_made_for(turn, run, activation)?;
    let Some(dropped) = dropped.filter(|_| !is_made) else {
        run.put_back(active);
        return Ok(());
    };
    let found = newest_below(turn, run, &active, dropped)?;
    let scope = active.scope;
    run.put_back(active);
    match found {
        Some(found) => {
            let owner = UndoOwner::Step(activation);
            let due = DueCompensation {
                owner,
                scope,
                found,
            };
            begin(turn, queue, run, due);
        }
        None => queue.push(run.number, Work::ConcludeUndone { activation }),
    }
    Ok(())
}

/// Whether a compensation is being executed.
pub(super) fn is_any_active(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<bool, StoreError> {
    is_active(turn, run, |_| true)
}

/// Whether a compensation is being made for a step.
fn is_made_for(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    activation: u64,
) -> Result<bool, StoreError> {
    let owner = UndoOwner::Step(activation);
    is_active(turn, run, |active| active.undoes_for() == Some(owner))
}

/// Whether a compensation is being made that `has_token_prefix`.
fn is_active(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    has_token_prefix: impl Fn(&Activation) -> bool,
) -> Result<bool, StoreError> {
    let counts = &run.record.compensations;
    if counts.entered_count == u64::from(counts.open_count) {
        return Ok(false);
    }
    for number in run.active(turn)? {
        let active = run.activation(turn, number)?;
        if active.is_some_and(|active| active.call.is_compensation() && has_token_prefix(active)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A compensation that is about to begin.
struct DueCompensation {
    owner: UndoOwner,
    /// Where it is executed.
    scope: ScopeNumber,
    found: Found,
}

fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    due: DueCompensation,
) {
    let DueCompensation {
        owner,
        scope,
        found: (place, record),
    } = due;
    turn.delete::<Compensations>(&(run.number, place));
    run.record.compensations.open_count -= 1;
    let visit = NewVisit {
        scope,
        step: record.step,
        visit: record.visit,
    };
    let mut active = run.activate(turn.now_ms(), visit);
    active.call = record.call;
    let scope = record.scope.clone();
    active.undone = Some(Box::new(Undone { owner, scope }));
    run.note(&active, EventKind::CompensationStarted);
    let activation = active.number;
    let work = match &record.input {
        Ok(input) => {
            active.input = *input;
            timeout_timers::start_total(turn, run, &mut active);
            Work::Execute { activation }
        }
        Err(reason) => {
            let target_result = failure::failed(turn, run, BAD_INPUT, reason.clone());
            Work::FinishStep {
                activation,
                target_result,
            }
        }
    };
    run.put_back(active);
    queue.push(run.number, work);
}

/// Notes how the last attempt at a compensation has ended, and returns the work that begins the next one.
pub(super) fn conclude(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &TargetResult,
) -> Result<Option<Work>, StoreError> {
    if is_failure(&target_result.outcome) {
        let cause = failure::cause_in(turn, target_result)?;
        let code = cause.code.unwrap_or_default();
        let why = target_result.reason.as_deref().unwrap_or(&code);
        note_failure(run, active, why);
        run.note(active, EventKind::CompensationFailed { code });
    } else {
        run.note(active, EventKind::CompensationCompleted);
    }
    Ok(active.undoes_for().map(|owner| Work::Undo { owner }))
}

/// Notes in the run that a compensation has failed. Once the end of the run is decided, its detail says why; before that,
/// [`note_dropped`] does when it ends.
fn note_failure(run: &mut LoadedRun, active: &Activation, why: &str) {
    let phase = run.record.fixed_end.as_ref().map(|end| end.phase);
    if active.undoes_for() == Some(UndoOwner::Run) && phase == Some(Phase::Compensating) {
        run.record.compensations.has_failed = true;
    } else {
        run.record.compensations.dropped_failed_count += 1;
    }
    if phase.is_some() {
        let step = &run.definition.definition.step(active.step).name;
        let note = format!("the compensation of step \"{step}\" failed: {why}");
        phase::add_note(run, &note);
    }
}

/// What the detail of a run says about dropped work that could not be undone before the end of the run was decided.
pub(super) fn note_dropped(run: &RunRecord) -> Option<String> {
    match run.compensations.dropped_failed_count {
        0 => None,
        1 => Some("a compensation of dropped work failed".to_owned()),
        count => Some(format!("{count} compensations of dropped work failed")),
    }
}
