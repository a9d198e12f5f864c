//! The end of a run: it reaches a terminal or is cancelled (W17, W18, W4).

use super::failure::error_in;
use super::outcome::name;
use super::render::{self, DataContext};
use super::{
    attributes, cancel_scope, compensation, concurrency, cursor, exclusion, index, linked_attempts,
    on_cancel, phase, resumable, run_output, run_timeout, start_timer, stopping, timeout_timers,
};
use crate::definition::{
    BuiltInTerminal, CallRole, Definition, Root, StepIndex, Target, Template, TerminalStatus,
};
use crate::ids::{RunNumber, ScopeNumber};
use crate::json::Json;
use crate::message::cut;
use crate::mostly_default::MostlyDefault;
use crate::run::work_queue::WorkQueue;
use crate::schedule;
use crate::store::StoreError;
use crate::tables::{
    Activation, Awaited, CompensationProgress, End, Ending, EventKind, FailureCause, FixedEnd,
    PayloadRef, Phase, RunRecord, RunStatus, TargetResult, TriggeredBy, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// The run has reached a terminal, or a limit.
pub(super) fn finish(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ending: Ending,
) -> TurnResult<()> {
    // It has ended meanwhile, or its scope has.
    let is_root = ending.scope == ScopeNumber::ROOT;
    if !run.record.status.is_open() || !(is_root || run.is_scope_live(turn, ending.scope)?) {
        return Ok(());
    }
    if run.record.fixed_end.is_some() {
        // Only a step below the handler can lead here; anything else was deferred before the end was decided.
        return match is_root {
            true => Ok(()),
            false => stop_handler(turn, queue, run, &ending),
        };
    }
    decide(turn, queue, run, ending)
}

/// Cancels the run; later results are rejected (W18). Nothing changes an end that is decided already.
pub(super) fn cancel(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    reason: Option<String>,
) -> TurnResult<()> {
    if !run.record.status.is_open() {
        return to_last_attempt(turn, queue, run, Work::Cancel { reason });
    }
    if linked_attempts::prevent(run, reason.as_deref()) {
        return Ok(());
    }
    let code = name::CANCELLED;
    end_by_itself(
        turn,
        queue,
        run,
        Ending::of_engine(BuiltInTerminal::Cancelled, reason, code),
    )
}

/// Ends a run that has timed out (W73).
pub(super) fn time_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    let detail = Some("workflow timeout".to_owned());
    let code = "workflow_timeout";
    end_by_itself(
        turn,
        queue,
        run,
        Ending::of_engine(BuiltInTerminal::TimedOut, detail, code),
    )
}

/// Work that cancels a run which was retried before it was done: the last attempt is meant.
fn to_last_attempt(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &LoadedRun,
    work: Work,
) -> TurnResult<()> {
    let latest = linked_attempts::latest_in(turn, run.number, run.record.chain)?;
    if latest != run.number {
        queue.push(latest, work);
    }
    Ok(())
}

fn end_by_itself(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ending: Ending,
) -> TurnResult<()> {
    match run.record.status.is_open() && run.record.fixed_end.is_none() {
        true => decide(turn, queue, run, ending),
        false => Ok(()),
    }
}

/// Decides how the run ends. What is open in it is cancelled; the rest of what goes before the end follows when that has
/// ended.
fn decide(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ending: Ending,
) -> TurnResult<()> {
    cursor::note_run(turn, queue, run, &ending)?;
    fix_end(turn, queue, run, ending)
}

/// Fixes how the run ends, once it is known where a resume would continue it.
pub(super) fn fix_end(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut ending: Ending,
) -> TurnResult<()> {
    let is_retried = linked_attempts::follows(run, &mut ending);
    let error = phase::error(run, &ending);
    let error = error.map(|error| run.store_payload(turn, error));
    let cause = phase::cause(turn, run, &ending, error);
    fix(turn, run, &ending)?;
    run.record.fixed_end = Some(Box::new(FixedEnd {
        terminal: ending.terminal,
        reason: ending.detail,
        phase: Phase::Cancelling,
        error: error.map(Box::new),
        cause,
        is_handler_over: false,
        cancelling_count: 0,
        is_retried,
    }));
    let works = cancel_scope::cancel_all(turn, queue, run)?;
    if phase::is_cancelling(run) {
        run.note_run(EventKind::PhaseChanged {
            phase: Phase::Cancelling,
        });
    } else {
        cancel_scope::settle_all(turn, queue, run)?;
        match phase::after_cancelling(turn, run)? {
            Some(phase) => {
                phase::enter(turn, queue, run, phase);
                forget_writes(queue, run);
            }
            None => end(turn, queue, run)?,
        }
    }
    // Children that end without a handler end before that of this run begins, and before the parent hears of this run.
    cancel_scope::push_in_order(queue, works);
    Ok(())
}

/// Queues the work that ends children of the run, the first one first.
fn end_children(
    queue: &mut WorkQueue,
    run: &LoadedRun,
    children: Vec<RunNumber>,
    work: impl Fn(Option<String>) -> Work,
) {
    for child in children.into_iter().rev() {
        queue.push(child, work(Some(format!("parent {} ended", run.record.id))));
    }
}

/// Ends the run immediately: with the end that is decided, or cancelled. Its handlers, and those of its children, are not
/// executed any further.
pub(super) fn force(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    reason: Option<String>,
) -> TurnResult<()> {
    if !run.record.status.is_open() {
        return to_last_attempt(turn, queue, run, Work::Force { reason });
    }
    // Until its output is checked, it may still fail: its end is not fixed.
    let is_retracted = run_output::retract_end(turn, run);
    let is_prevented = linked_attempts::prevent(run, reason.as_deref());
    let end = match run.record.fixed_end.clone() {
        Some(fixed) => {
            // What prevents an attempt is noted with its reason.
            if let Some(reason) = reason.filter(|_| !is_prevented) {
                phase::add_note(run, &format!("ended by force: {reason}"));
            }
            note_left_out(run, &fixed);
            FinalEnd::from(*fixed)
        }
        None => {
            let ending = Ending::of_engine(BuiltInTerminal::Cancelled, reason, name::CANCELLED);
            // It is known already where it stops.
            if !is_retracted {
                cursor::note_run(turn, queue, run, &ending)?;
            }
            fix(turn, run, &ending)?;
            note_not_begun(run, ending.terminal);
            FinalEnd {
                terminal: ending.terminal,
                reason: None,
                error: None,
                is_retried: false,
            }
        }
    };
    let children = tear_down(turn, queue, run)?;
    // Also what was left out.
    let reason = run.record.detail.clone();
    close(turn, queue, run, FinalEnd { reason, ..end })?;
    end_children(queue, run, children, |reason| Work::Force { reason });
    Ok(())
}

/// Notes what goes before the end of a run and is left out: part of the current phase, and the one after it.
fn note_left_out(run: &mut LoadedRun, end: &FixedEnd) {
    let stopped = match end.phase {
        Phase::Cancelling => "the end of cancelled steps was not awaited",
        // Its end was retracted.
        Phase::CheckingOutput => return,
        Phase::Compensating => "the compensations were stopped",
        Phase::OnError => "onError was stopped",
        Phase::OnCancel => "onCancel was stopped",
    };
    phase::add_note(run, stopped);
    match end.phase {
        Phase::Cancelling => note_not_compensated(run, end.terminal),
        Phase::Compensating => {
            run.record.compensations.progress = CompensationProgress::Partial;
        }
        Phase::CheckingOutput | Phase::OnError | Phase::OnCancel => return,
    }
    if end.cause.is_some() {
        phase::add_note(run, "the handler was not executed");
    }
}

/// Notes that what could be undone is not undone.
fn note_not_compensated(run: &mut LoadedRun, terminal: Target) {
    let is_wanted = run.definition.definition.compensates_at(terminal);
    if is_wanted && run.record.compensations.open_count > 0 {
        phase::add_note(run, "no compensation was made");
    }
}

/// Notes what would go before an end that nothing goes before.
fn note_not_begun(run: &mut LoadedRun, terminal: Target) {
    note_not_compensated(run, terminal);
    if run.definition.definition.handler_at(terminal).is_some() {
        phase::add_note(run, "onCancel was not executed");
    }
}

/// The calls that a forced end stops or leaves out (W81), by the steps that they belong to.
#[derive(Default)]
struct CallsLeftOut {
    stopped_compensations: Vec<StepIndex>,
    stopped_on_cancel: Vec<StepIndex>,
    skipped_on_cancel: Vec<StepIndex>,
}

impl CallsLeftOut {
    fn add(&mut self, definition: &Definition, active: &Activation) {
        let calls = match active.call {
            CallRole::Compensation | CallRole::FallbackCompensation => {
                &mut self.stopped_compensations
            }
            CallRole::OnCancel => &mut self.stopped_on_cancel,
            CallRole::Target | CallRole::Fallback => {
                if !on_cancel::is_due(definition.step(active.step), active) {
                    return;
                }
                &mut self.skipped_on_cancel
            }
        };
        calls.push(active.step);
    }

    /// Notes them in the detail of the run.
    fn note(self, run: &mut LoadedRun) {
        let fixed_end = run.record.fixed_end.as_ref();
        let is_noted = fixed_end.is_some_and(|end| end.phase == Phase::Compensating);
        // The end of a run that compensates has noted its compensations.
        if !is_noted && !self.stopped_compensations.is_empty() {
            run.record.compensations.progress = CompensationProgress::Partial;
            note_steps(
                run,
                "the compensation",
                &self.stopped_compensations,
                "stopped",
            );
        }
        note_steps(run, "onCancel", &self.stopped_on_cancel, "stopped");
        note_steps(run, "onCancel", &self.skipped_on_cancel, "not executed");
    }
}

/// Notes what has happened to a call of steps; one note, whatever their number.
fn note_steps(run: &mut LoadedRun, call: &str, steps: &[StepIndex], what: &str) {
    let Some((first, rest)) = steps.split_first() else {
        return;
    };
    let name = &run.definition.definition.step(*first).name;
    let note = match rest.len() {
        0 => format!("{call} of step \"{name}\" was {what}"),
        more => format!("{call} of step \"{name}\" and {more} more was {what}"),
    };
    phase::add_note(run, &note);
}

/// A handler has reached a limit of the run: it stops, and the run ends as it was decided.
fn stop_handler(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ending: &Ending,
) -> TurnResult<()> {
    let works = cancel_scope::cancel_all(turn, queue, run)?;
    let note = ending.detail.as_deref().unwrap_or_default();
    phase::note_failure(run, &ending.cause.code, note);
    phase::note_handler_over(run);
    if !phase::is_cancelling(run) {
        cancel_scope::settle_all(turn, queue, run)?;
        queue.push(run.number, Work::NextPhase);
    }
    cancel_scope::push_in_order(queue, works);
    Ok(())
}

/// The run ends as it was decided: its last phase is over.
pub(super) fn end(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    // The handler was left to an attempt that was prevented meanwhile.
    if phase::is_handler_left(run) {
        queue.push(run.number, Work::NextPhase);
        return Ok(());
    }
    match run.record.fixed_end.take() {
        Some(fixed) => close(turn, queue, run, FinalEnd::from(*fixed)),
        None => Ok(()),
    }
}

/// Fixes the output and the detail of a run that is about to end.
fn fix(turn: &mut Turn<'_, '_>, run: &mut LoadedRun, ending: &Ending) -> TurnResult<()> {
    let definition = run.definition.clone();
    let template = definition.definition.output_at(ending.terminal);
    set_output(turn, run, ending.scope, template)?;
    let note = attributes::compute(turn, run, ending.scope)?;
    run.count_open_scopes(turn, ending.scope)?;
    run_timeout::clear(turn, run);
    start_timer::clear(turn, run);
    let dropped = compensation::note_dropped(&run.record);
    let notes: Vec<String> = [ending.detail.clone(), note, dropped]
        .into_iter()
        .flatten()
        .collect();
    run.record.detail = (!notes.is_empty()).then(|| cut(&notes.join("; ")));
    Ok(())
}

/// How a run ends.
struct FinalEnd {
    terminal: Target,
    /// Why, where the terminal does not say.
    reason: Option<String>,
    /// As in [`End`].
    error: Option<Box<PayloadRef>>,
    /// As in [`FixedEnd`].
    is_retried: bool,
}

impl From<FixedEnd> for FinalEnd {
    fn from(fixed: FixedEnd) -> Self {
        Self {
            terminal: fixed.terminal,
            reason: fixed.reason,
            error: fixed.error,
            is_retried: fixed.is_retried,
        }
    }
}

/// Ends the run and delivers its result to its parent.
fn close(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    end: FinalEnd,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let FinalEnd {
        mut terminal,
        reason,
        error,
        is_retried,
    } = end;
    run.record.fixed_end = None;
    if is_retried && matches!(terminal, Target::BuiltIn(_)) {
        terminal = Target::BuiltIn(BuiltInTerminal::Failed);
    }
    let status = definition
        .status_at(terminal)
        .expect("a run ends at a terminal, never at a step");
    run.record.become_status(RunStatus::Ended(status));
    run.record.end = Some(End { terminal, error });
    run.record.completed_at_ms = Some(turn.now_ms());
    if is_retried {
        let next = linked_attempts::begin(turn, queue, run)?;
        phase::add_note(run, &format!("retried as {next}"));
        run.note_run(EventKind::RunRetried { next });
        run.note_run(EventKind::of_end(status, terminal, reason));
        forget_writes(queue, run);
        return Ok(());
    }
    run.note_run(EventKind::of_end(status, terminal, reason));
    concurrency::release(turn, queue, run)?;
    exclusion::release(turn, run)?;
    if let TriggeredBy::Schedule { .. } = run.record.triggered_by {
        let key = (run.record.namespace.clone(), definition.name.clone());
        schedule::run_ended(turn, &key)?;
    }
    forget_writes(queue, run);
    if let Some(link) = run.record.parent {
        let work = Work::ChildEnded {
            activation: link.activation,
            child: run.record.first_attempt(run.number),
        };
        queue.push(link.run, work);
    }
    Ok(())
}

/// Drops what the scopes below the run have written to the state, unless a resume may need it: none of them is open.
fn forget_writes(queue: &mut WorkQueue, run: &LoadedRun) {
    if run.record.scopes.state_writes_bytes > 0 && !cursor::may_be_resumed(&run.record) {
        queue.push(run.number, Work::ForgetWrites);
    }
}

/// Cancels everything that the run still waits for, without waiting for its end, but for its children, which are returned.
/// Signals that no step will consume are deleted with the run.
fn tear_down(
    turn: &mut Turn<'_, '_>,
    queue: &WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<Vec<RunNumber>> {
    let definition = run.definition.clone();
    let mut children = Vec::new();
    let mut left_out = CallsLeftOut::default();
    let scopes = cursor::note_open_scopes(turn, queue, run)?;
    for number in run.active(turn)? {
        if let Some(active) = run.take(turn, number)? {
            left_out.add(&definition.definition, &active);
            children.extend(stopping::force(turn, run, &active)?);
            timeout_timers::clear(turn, run.at(&active), &active);
            resumable::keep_step(turn, run, &active)?;
            run.leave(&active);
            // What is called after the end of a visit is not one that the end of the run has ended.
            if active.call.is_after_visit() {
                run.record.left_count += 1;
            }
        }
    }
    for scope in scopes {
        resumable::close_scope(turn, run, scope)?;
    }
    left_out.note(run);
    Ok(children)
}

/// The mapping's result, or without one the output of the step left last (W4).
fn set_output(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    scope: ScopeNumber,
    template: Option<&Template>,
) -> Result<(), StoreError> {
    // The scope is looked up before its progress is read.
    run.scope(turn, scope)?;
    let last = run.progress(scope).last_left;
    let reads_last = template.is_none_or(|template| template.reads(Root::Result));
    let last = match last.filter(|_| reads_last) {
        Some(step) => render::output_of(turn, run, scope, step)?,
        None => None,
    };
    run.record.output = match template {
        Some(template) => {
            let context = DataContext::of(scope).with_result(last);
            Some(render::output(turn, run, context, template)?)
        }
        None => last,
    };
    Ok(())
}

/// The work that finishes the parent's step with the child's result, if the step still waits for it (W17).
pub(super) fn note_child_end(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    activation: u64,
    child_number: RunNumber,
) -> TurnResult<Option<Work>> {
    let from = Awaited::Child(child_number);
    let waiting = run.activation(turn, activation)?;
    let Some(scope) = waiting
        .filter(|active| active.state.awaits() == from)
        .map(|active| active.scope)
    else {
        return Ok(None);
    };
    let last_number = linked_attempts::latest(turn, child_number)?;
    index::expire_child(turn, child_number)?;
    index::expire_child(turn, last_number)?;
    let child = turn.run_record(last_number)?;
    let child = child.expect("a child is kept while its parent waits for it");
    let is_completed = child.status == RunStatus::Ended(TerminalStatus::Completed);
    let outcome = name::of(if is_completed {
        name::SUCCESS
    } else {
        name::FAILURE
    });
    let output = match child.output {
        Some(reference) => Some(turn.payload(reference)?),
        None if is_completed => None,
        None => Some(error_of(&child)),
    };
    let has_error = output.as_ref().and_then(error_in).is_some();
    let output = output.map(|output| run.store_payload(turn, output));
    let progress = child.progress;
    // The attempts before it are part of the child.
    let (has_waited_before, steps_before) = child
        .chain
        .map_or((false, 0), |chain| (chain.has_waited, chain.steps_before));
    let has_waited = progress.has_waited || has_waited_before;
    let steps = progress.steps_since_wait.saturating_add(steps_before);
    run.add_steps(scope, has_waited, steps);
    let kind = EventKind::ChildCompleted {
        child: child.id.clone(),
        outcome: outcome.clone(),
    };
    run.note_of(turn, activation, kind)?;
    let target_result = TargetResult {
        from,
        output,
        reason: (!is_completed).then(|| ended_badly(&child)),
        is_retryable: true,
        cause: MostlyDefault::from(FailureCause {
            code: (!is_completed && !has_error).then(|| child.status.name().to_owned()),
            timeout: None,
        }),
        ..TargetResult::of_engine(outcome)
    };
    Ok(Some(Work::FinishStep {
        activation,
        target_result,
    }))
}

/// The error that a child without an output gives its parent when it fails (W10a).
fn error_of(child: &RunRecord) -> Json {
    let message = child.detail.clone();
    Json::error(
        child.status.name(),
        &message.unwrap_or_else(|| ended_badly(child)),
    )
}

/// Describes a child's end to its parent.
fn ended_badly(child: &RunRecord) -> String {
    let (id, status) = (&child.id, child.status.name());
    match &child.detail {
        Some(detail) => format!("{id} ended {status}: {detail}"),
        None => format!("{id} ended {status}"),
    }
}
