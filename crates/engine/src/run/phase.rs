//! What a run does between the decision about its end and the end: it undoes what its steps have done, and executes its
//! handler (W80–W83).

use super::compensation;
use super::failure::Exit;
use super::outcome::is_good;
use super::run_output;
use crate::definition::{Definition, Target, TerminalStatus};
use crate::ids::ScopeNumber;
use crate::json::{Json, quote};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::scope_path;
use crate::store::StoreError;
use crate::tables::{
    Activation, CompensationProgress, Ending, EventKind, PayloadRef, Phase, StepTimeout, UndoOwner,
    Work,
};
use crate::turn::{LoadedRun, Turn};

/// The code of a handler that has taken too long.
const PHASE_TIMEOUT: &str = "phase_timeout";

/// Why a run ends failed or timed out; `None` for another end.
pub(super) fn error(run: &LoadedRun, ending: &Ending) -> Option<Json> {
    match run.definition.definition.status_at(ending.terminal) {
        Some(TerminalStatus::Failed | TerminalStatus::TimedOut) => Some(error_value(run, ending)),
        Some(TerminalStatus::Completed | TerminalStatus::Cancelled) | None => None,
    }
}

/// What the handler reads that is executed before this end: its `error`, or why the run is cancelled. `None` if no handler
/// is executed.
pub(super) fn cause(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    ending: &Ending,
    error: Option<PayloadRef>,
) -> Option<PayloadRef> {
    let handler = run.definition.definition.handler_at(ending.terminal);
    // A run that has not begun has nothing to handle.
    handler.filter(|_| run.record.has_begun() && !run.record.is_held_up())?;
    Some(match error {
        Some(error) => error,
        None => run.store_payload(turn, cancel_value(ending)),
    })
}

/// Whether steps that were cancelled with the run, or with its handler, have not ended yet.
pub(super) fn is_cancelling(run: &LoadedRun) -> bool {
    let end = run.record.fixed_end.as_ref();
    end.is_some_and(|end| end.cancelling_count > 0)
}

/// Whether a handler goes before the end that was not entered.
pub(super) fn is_handler_left(run: &LoadedRun) -> bool {
    let end = run.record.fixed_end.as_ref();
    end.is_some_and(|end| {
        let is_before = matches!(
            end.phase,
            Phase::Cancelling | Phase::CheckingOutput | Phase::Compensating
        );
        is_before && fixed(run).is_some_and(|(_, has_handler)| has_handler)
    })
}

/// The phase that follows when everything that was open in the run has ended; `None` if the run ends.
pub(super) fn after_cancelling(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<Option<Phase>, StoreError> {
    let Some((terminal, _)) = fixed(run) else {
        return Ok(None);
    };
    if run_output::is_checked_at(run, terminal) {
        return Ok(Some(Phase::CheckingOutput));
    }
    after_checking(turn, run)
}

/// The phase that follows when the output of the run has been checked, or need not be; `None` if the run ends.
pub(super) fn after_checking(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
) -> Result<Option<Phase>, StoreError> {
    let Some((terminal, has_handler)) = fixed(run) else {
        return Ok(None);
    };
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let is_undoing = run.record.compensations.entered_count > 0 && {
        let is_wanted = definition.compensates_at(terminal);
        let has_any = run.record.compensations.open_count > 0;
        (is_wanted && has_any) || compensation::is_any_active(turn, run)?
    };
    Ok(match (is_undoing, has_handler) {
        (true, _) => Some(Phase::Compensating),
        (false, true) => Some(phase_of_handler(definition, terminal)),
        (false, false) => None,
    })
}

/// Where a run ends whose end is decided, and whether a handler goes before.
fn fixed(run: &LoadedRun) -> Option<(Target, bool)> {
    let end = run.record.fixed_end.as_ref()?;
    // With another attempt, the handler is left to the last one.
    let has_handler = end.cause.is_some() && !end.is_retried;
    Some((end.terminal, has_handler))
}

/// The phase in which the handler of an end at `terminal` is executed.
fn phase_of_handler(definition: &Definition, terminal: Target) -> Phase {
    match definition.status_at(terminal) {
        Some(TerminalStatus::Cancelled) => Phase::OnCancel,
        _ => Phase::OnError,
    }
}

/// Begins a phase of a run whose end is decided, but for that of cancelling.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    phase: Phase,
) {
    let Some((terminal, _)) = fixed(run) else {
        return;
    };
    if let Some(end) = &mut run.record.fixed_end {
        end.phase = phase;
    }
    run.note_run(EventKind::PhaseChanged { phase });
    // Each phase counts its own steps (W78).
    run.record.unwaited_steps_count = 0;
    let progress = run.progress(ScopeNumber::ROOT);
    progress.steps_since_wait = 0;
    progress.entered_count = 0;
    let definition = &run.definition.definition;
    let work = match phase {
        Phase::CheckingOutput => return run_output::request(turn, run),
        Phase::Cancelling | Phase::Compensating => {
            if definition.compensates_at(terminal) {
                run.record.compensations.progress = CompensationProgress::Running;
            }
            let owner = UndoOwner::Run;
            Work::Undo { owner }
        }
        Phase::OnError | Phase::OnCancel => {
            let step = definition.handler_at(terminal);
            Work::Enter {
                scope: ScopeNumber::ROOT,
                step: step.expect("the phase is entered for its handler"),
            }
        }
    };
    queue.push(run.number, work);
}

/// A phase is over: the next one follows, or the end of the run. A handler may leave a compensation behind, which ends
/// first.
pub(super) fn next(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> Result<(), StoreError> {
    let Some(end) = run.record.fixed_end.clone() else {
        return Ok(());
    };
    if end.cancelling_count > 0 {
        return Ok(());
    }
    let next = match end.phase {
        Phase::Cancelling => after_cancelling(turn, run)?,
        // It ends with the verdict.
        Phase::CheckingOutput => return Ok(()),
        _ if run.record.active_count > 0 => return Ok(()),
        Phase::Compensating => {
            end_compensating(run);
            let definition = &run.definition.definition;
            let has_handler = fixed(run).is_some_and(|(_, has_handler)| has_handler);
            has_handler.then(|| phase_of_handler(definition, end.terminal))
        }
        // Its handler may not have been entered yet.
        Phase::OnError | Phase::OnCancel if !end.is_handler_over => return Ok(()),
        Phase::OnError | Phase::OnCancel => None,
    };
    match next {
        Some(phase) => enter(turn, queue, run, phase),
        None => queue.push(run.number, Work::EndRun),
    }
    Ok(())
}

/// Notes how much has been undone.
fn end_compensating(run: &mut LoadedRun) {
    let compensations = &mut run.record.compensations;
    compensations.progress = match (compensations.progress, compensations.has_failed) {
        (CompensationProgress::None, _) => CompensationProgress::None,
        (_, true) => CompensationProgress::Partial,
        (_, false) => CompensationProgress::Done,
    };
}

/// Notes that the handler has ended or was stopped.
pub(super) fn note_handler_over(run: &mut LoadedRun) {
    if let Some(end) = &mut run.record.fixed_end {
        end.is_handler_over = true;
    }
}

/// The value of `$.cancel` in `onCancel`. Callers are not identified yet.
fn cancel_value(ending: &Ending) -> Json {
    let mut text = "{\"reason\":".to_owned();
    push(&mut text, ending.detail.as_deref());
    text.push_str(",\"actor\":null}");
    Json::from_checked(text)
}

/// The value of `$.error` in `onError`, and the error that the run shows.
fn error_value(run: &LoadedRun, ending: &Ending) -> Json {
    let definition = &run.definition.definition;
    let step = ending
        .cause
        .step
        .map(|step| definition.step(step).name.as_str());
    let scope = scope_path::to_text(definition, &run.scope_id(ending.scope).path);
    let outcome = ending
        .cause
        .outcome
        .as_ref()
        .map(|outcome| outcome.as_str());
    let terminal = definition.target_name(ending.terminal);
    let mut text = "{\"code\":".to_owned();
    quote(&ending.cause.code, &mut text);
    let fields = [
        ("message", ending.detail.as_deref()),
        ("step", step),
        ("scope", Some(scope.as_str())),
        ("outcome", outcome),
        ("terminal", Some(terminal.as_str())),
    ];
    for (name, value) in fields {
        text.push_str(",\"");
        text.push_str(name);
        text.push_str("\":");
        push(&mut text, value);
    }
    text.push('}');
    Json::from_checked(text)
}

fn push(text: &mut String, value: Option<&str>) {
    match value {
        Some(value) => quote(value, text),
        None => text.push_str("null"),
    }
}

/// The work that follows the end of a handler. The failure of a handler does not change how the run ends.
pub(super) fn end_of_handler(run: &mut LoadedRun, handler: &Activation, exit: &Exit<'_>) -> Work {
    note_handler_over(run);
    let target_result = exit.target_result;
    if !is_good(&target_result.outcome) {
        let is_overdue = target_result.cause.timeout == Some(StepTimeout::Total);
        let code = exit.cause.code.as_deref().filter(|_| !is_overdue);
        let code = match is_overdue {
            true => PHASE_TIMEOUT,
            false => code.unwrap_or(target_result.outcome.as_str()),
        };
        let name = &run.definition.definition.step(handler.step).name;
        let why = target_result.reason.as_deref();
        let note = format!("{name} failed: {}", why.unwrap_or(code));
        note_failure(run, code, &note);
    }
    Work::NextPhase
}

/// Notes in the history and in the detail of the run that a handler failed.
pub(super) fn note_failure(run: &mut LoadedRun, code: &str, note: &str) {
    run.note_run(EventKind::HandlerFailed { code: cut(code) });
    add_note(run, note);
}

/// Adds a sentence to the detail of the run.
pub(super) fn add_note(run: &mut LoadedRun, note: &str) {
    let detail = match &run.record.detail {
        Some(detail) => format!("{detail}; {note}"),
        None => note.to_owned(),
    };
    run.record.detail = Some(cut(&detail));
}
