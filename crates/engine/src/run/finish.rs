//! The end of a run: it reaches a terminal or is cancelled (W17, W18, W4).

use super::failure::error_in;
use super::outcome::name;
use super::render::{self, DataContext};
use super::{attributes, cancel_scope, index, run_timeout, start_timer, timeout_timers};
use crate::definition::{BuiltInTerminal, Definition, Target, Template, TerminalStatus};
use crate::ids::{RunNumber, ScopeNumber};
use crate::json::Json;
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::schedule;
use crate::store::StoreError;
use crate::tables::{
    Awaited, End, EventKind, FailureCause, RunRecord, RunStatus, TargetResult, TriggeredBy, Work,
};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// How a run ends.
pub(super) struct Ending {
    /// The scope that led to the terminal.
    pub(super) scope: ScopeNumber,
    pub(super) terminal: Target,
    pub(super) detail: Option<String>,
}

/// Ends the run and delivers its result to its parent.
pub(super) fn finish(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    ending: Ending,
) -> TurnResult<()> {
    if !run.record.status.is_open() {
        return Ok(());
    }
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let status = definition
        .status_at(ending.terminal)
        .expect("a run ends at a terminal, never at a step");
    let template = own_output(definition, ending.terminal).or_else(|| {
        definition
            .output
            .as_ref()
            .filter(|_| status == TerminalStatus::Completed)
    });
    set_output(turn, run, ending.scope, template)?;
    let note = attributes::compute(turn, run, ending.scope)?;
    run.count_open_scopes(turn, ending.scope)?;
    run_timeout::clear(turn, run);
    start_timer::clear(turn, run);
    let children = tear_down(turn, run)?;
    let notes: Vec<String> = [ending.detail.clone(), note]
        .into_iter()
        .flatten()
        .collect();
    run.record.detail = (!notes.is_empty()).then(|| cut(&notes.join("; ")));
    run.record.become_status(RunStatus::Ended(status));
    run.record.end = Some(End {
        terminal: ending.terminal,
    });
    run.record.completed_at_ms = Some(turn.now_ms());
    run.note_run(event_of(status, ending));
    if let TriggeredBy::Schedule { .. } = run.record.triggered_by {
        let key = (run.record.namespace.clone(), definition.name.clone());
        schedule::run_ended(turn, &key)?;
    }
    if run.record.state_writes_bytes > 0 {
        queue.push(run.number, Work::ForgetWrites);
    }
    if let Some(link) = run.record.parent {
        let work = Work::ChildEnded {
            activation: link.activation,
            child: run.number,
        };
        queue.push(link.run, work);
    }
    // They end before the parent hears of this run.
    for child in children.into_iter().rev() {
        let reason = Some(format!("parent {} ended", run.record.id));
        queue.push(child, Work::Cancel { reason });
    }
    Ok(())
}

/// Cancels the run; later results are rejected (W18).
pub(super) fn cancel(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    reason: Option<String>,
) -> TurnResult<()> {
    let terminal = Target::BuiltIn(BuiltInTerminal::Cancelled);
    let ending = Ending {
        scope: ScopeNumber::ROOT,
        terminal,
        detail: reason,
    };
    finish(turn, queue, run, ending)
}

/// Ends a run that has timed out (W73).
pub(super) fn time_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
) -> TurnResult<()> {
    let ending = Ending {
        scope: ScopeNumber::ROOT,
        terminal: Target::BuiltIn(BuiltInTerminal::TimedOut),
        detail: Some("workflow timeout".to_owned()),
    };
    finish(turn, queue, run, ending)
}

/// The output that a terminal defines (W4).
fn own_output(definition: &Definition, terminal: Target) -> Option<&Template> {
    match terminal {
        Target::Custom(index) => definition.terminal(index).output.as_ref(),
        Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => None,
    }
}

fn event_of(status: TerminalStatus, ending: Ending) -> EventKind {
    let Ending {
        terminal, detail, ..
    } = ending;
    match status {
        TerminalStatus::Completed => EventKind::WorkflowCompleted { terminal },
        TerminalStatus::Failed => EventKind::WorkflowFailed { terminal, detail },
        TerminalStatus::Cancelled => EventKind::WorkflowCancelled {
            terminal,
            reason: detail,
        },
        TerminalStatus::TimedOut => EventKind::WorkflowTimedOut { terminal, detail },
    }
}

/// Cancels everything that the run still waits for, but for its children, which are returned. Signals that no step will
/// consume are deleted with the run.
fn tear_down(turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TurnResult<Vec<RunNumber>> {
    let mut children = Vec::new();
    for number in run.active(turn)? {
        if let Some(active) = run.take(turn, number)? {
            children.extend(cancel_scope::stop(turn, run, &active)?);
            timeout_timers::clear(turn, run.at(&active), &active);
            run.leave(&active);
        }
    }
    run.close_scopes(turn)?;
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
    run.record.output = match (template, last) {
        (Some(template), _) => Some(render::output(turn, run, DataContext::of(scope), template)?),
        (None, Some(step)) => render::output_of(turn, run, scope, step)?,
        (None, None) => None,
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
    index::expire_child(turn, child_number)?;
    let child = turn.run_record(child_number)?;
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
    run.add_steps(scope, progress.has_waited, progress.steps_since_wait);
    let kind = EventKind::ChildCompleted {
        child: child.id.clone(),
        outcome: outcome.clone(),
    };
    run.note_of(turn, activation, kind)?;
    let target_result = TargetResult {
        from,
        outcome,
        output,
        reason: (!is_completed).then(|| ended_badly(&child)),
        is_retryable: true,
        cause: FailureCause {
            code: (!is_completed && !has_error).then(|| child.status.name().to_owned()),
            timeout: None,
        },
        not_before_ms: None,
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
