//! What a run does between the decision about its end and the end: its handlers (W80, W81, W83).

use super::failure::Exit;
use super::outcome::is_good;
use crate::definition::{StepIndex, TerminalStatus};
use crate::ids::ScopeNumber;
use crate::json::{Json, quote};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::scope_path;
use crate::tables::{Activation, Ending, EventKind, FixedEnd, Phase, StepTimeout, Work};
use crate::turn::{LoadedRun, Turn};

/// The code of a handler that has taken too long.
const PHASE_TIMEOUT: &str = "phase_timeout";

/// A handler, and the end that it goes before.
pub(super) struct Handler {
    step: StepIndex,
    end: FixedEnd,
}

/// The handler of a run that is about to end; `None` without one for this end, and for a run that has not begun.
pub(super) fn handler(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    ending: &Ending,
) -> Option<Handler> {
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let step = definition.handler_at(ending.terminal)?;
    if run.record.activations_count == 0 {
        return None;
    }
    let (phase, cause) = match definition.status_at(ending.terminal) {
        Some(TerminalStatus::Cancelled) => (Phase::OnCancel, cancel_cause(ending)),
        _ => (Phase::OnError, error_cause(run, ending)),
    };
    let end = FixedEnd {
        terminal: ending.terminal,
        reason: ending.detail.clone(),
        phase,
        cause: run.store_payload(turn, cause),
    };
    Some(Handler { step, end })
}

/// Begins the handler. The end of the run is fixed from here on.
pub(super) fn begin(queue: &mut WorkQueue, run: &mut LoadedRun, handler: Handler) {
    let Handler { step, end } = handler;
    let phase = end.phase;
    run.record.fixed_end = Some(end);
    run.note_run(EventKind::PhaseChanged { phase });
    // Each phase counts its own steps (W78).
    run.record.unwaited_steps_count = 0;
    let progress = run.progress(ScopeNumber::ROOT);
    progress.steps_since_wait = 0;
    progress.entered_count = 0;
    let scope = ScopeNumber::ROOT;
    queue.push(run.number, Work::Enter { scope, step });
}

/// What `$.cancel` is in `onCancel`. Callers are not identified yet.
fn cancel_cause(ending: &Ending) -> Json {
    let mut text = "{\"reason\":".to_owned();
    push(&mut text, ending.detail.as_deref());
    text.push_str(",\"actor\":null}");
    Json::from_checked(text)
}

/// What `$.error` is in `onError`.
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

/// The work that follows the end of a handler. That a handler failed does not change the end of the run.
pub(super) fn end_of_handler(run: &mut LoadedRun, handler: &Activation, exit: &Exit<'_>) -> Work {
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
    Work::EndRun
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
