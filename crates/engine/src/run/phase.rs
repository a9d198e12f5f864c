//! What a run does between the decision about its end and the end: it undoes what its steps have done, and executes its
//! handler (W80–W83).

use super::compensation;
use super::failure::Exit;
use super::outcome::is_good;
use crate::definition::{Definition, Target, TerminalStatus};
use crate::ids::ScopeNumber;
use crate::json::{Json, quote};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::scope_path;
use crate::store::StoreError;
use crate::tables::{
    Activation, CompensationProgress, Ending, EventKind, FixedEnd, Phase, StepTimeout, UndoOwner,
    Work,
};
use crate::turn::{LoadedRun, Turn};

/// The code of a handler that has taken too long.
const PHASE_TIMEOUT: &str = "phase_timeout";

/// The fixed end of a run, with the first phase before it; `None` if the run ends without a phase.
pub(super) fn before(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    ending: &Ending,
) -> Result<Option<FixedEnd>, StoreError> {
    let definition = run.definition.clone();
    let definition = &definition.definition;
    // A run that has not begun has done nothing, and has nothing to handle.
    let handler = definition.handler_at(ending.terminal);
    let handler = handler.filter(|_| run.record.activations_count > 0);
    let handler_phase = phase_of_handler(definition, ending.terminal);
    let is_undoing = run.record.compensations.entered_count > 0 && {
        let is_wanted = definition.compensates_at(ending.terminal);
        let has_any = run.record.compensations.open_count > 0;
        (is_wanted && has_any) || compensation::is_any_active(turn, run)?
    };
    let phase = match (is_undoing, handler) {
        (true, _) => Phase::Compensating,
        (false, Some(_)) => handler_phase,
        (false, None) => return Ok(None),
    };
    let cause = handler.map(|_| match handler_phase {
        Phase::OnCancel => cancel_cause(ending),
        Phase::OnError | Phase::Compensating => error_cause(run, ending),
    });
    Ok(Some(FixedEnd {
        terminal: ending.terminal,
        reason: ending.detail.clone(),
        phase,
        cause: cause.map(|cause| run.store_payload(turn, cause)),
        is_handler_over: false,
        children: Vec::new(),
    }))
}

/// The phase in which the handler of an end at `terminal` is executed.
fn phase_of_handler(definition: &Definition, terminal: Target) -> Phase {
    match definition.status_at(terminal) {
        Some(TerminalStatus::Cancelled) => Phase::OnCancel,
        _ => Phase::OnError,
    }
}

/// Fixes the end of the run, and begins the first phase before it.
pub(super) fn begin(queue: &mut WorkQueue, run: &mut LoadedRun, end: FixedEnd) {
    let is_wanted = run.definition.definition.compensates_at(end.terminal);
    if end.phase == Phase::Compensating && is_wanted {
        run.record.compensations.progress = CompensationProgress::Running;
    }
    enter(queue, run, end);
}

fn enter(queue: &mut WorkQueue, run: &mut LoadedRun, end: FixedEnd) {
    let (phase, terminal) = (end.phase, end.terminal);
    run.record.fixed_end = Some(end);
    run.note_run(EventKind::PhaseChanged { phase });
    // Each phase counts its own steps (W78).
    run.record.unwaited_steps_count = 0;
    let progress = run.progress(ScopeNumber::ROOT);
    progress.steps_since_wait = 0;
    progress.entered_count = 0;
    let owner = UndoOwner::Run;
    let work = match phase {
        Phase::Compensating => Work::Undo { owner },
        Phase::OnError | Phase::OnCancel => {
            let step = run.definition.definition.handler_at(terminal);
            Work::Enter {
                scope: ScopeNumber::ROOT,
                step: step.expect("the phase is entered for its handler"),
            }
        }
    };
    queue.push(run.number, work);
}

/// The compensations of a run that is about to end are made, or its handler has ended: its handler follows, or its end. A
/// handler may leave a compensation behind, which ends first.
pub(super) fn next(queue: &mut WorkQueue, run: &mut LoadedRun) {
    if run.record.active_count > 0 {
        return;
    }
    let Some(end) = run.record.fixed_end.clone() else {
        return;
    };
    if end.phase == Phase::Compensating {
        let compensations = &mut run.record.compensations;
        compensations.progress = match (compensations.progress, compensations.has_failed) {
            (CompensationProgress::None, _) => CompensationProgress::None,
            (_, true) => CompensationProgress::Partial,
            (_, false) => CompensationProgress::Done,
        };
        if end.cause.is_some() {
            let phase = phase_of_handler(&run.definition.definition, end.terminal);
            return enter(queue, run, FixedEnd { phase, ..end });
        }
    }
    // Its handler may not have been entered yet.
    if end.phase == Phase::Compensating || end.is_handler_over {
        queue.push(run.number, Work::EndRun);
    }
}

/// Notes that the handler has ended or was stopped.
pub(super) fn note_handler_over(run: &mut LoadedRun) {
    if let Some(end) = &mut run.record.fixed_end {
        end.is_handler_over = true;
    }
}

/// The value of `$.cancel` in `onCancel`. Callers are not identified yet.
fn cancel_cause(ending: &Ending) -> Json {
    let mut text = "{\"reason\":".to_owned();
    push(&mut text, ending.detail.as_deref());
    text.push_str(",\"actor\":null}");
    Json::from_checked(text)
}

/// The value of `$.error` in `onError`.
fn error_cause(run: &LoadedRun, ending: &Ending) -> Json {
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
