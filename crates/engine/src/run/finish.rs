//! A run reaches a terminal, or is cancelled (W17, W18, W4).

use super::advance::{Progress, Settled, Work};
use super::enter::signal_timer;
use super::loaded::{ActivationRef, Loaded, load, load_if_kept};
use super::open::payload;
use super::outcome::name;
use super::render;
use super::settle::wake_timer;
use crate::definition::{BuiltInTerminal, Definition, Target, Template, TerminalStatus};
use crate::ids::RunNumber;
use crate::json::Json;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::plan;
use crate::schedule;
use crate::store::StoreError;
use crate::tables::{
    ActivationState, End, EventKind, InputChecks, ParentLink, RunRecord, RunStatus, SignalsWaiting,
    TriggeredBy,
};
use crate::task;
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// How a run ends.
pub(super) struct Ending {
    pub(super) terminal: Target,
    pub(super) detail: Option<String>,
}

/// Ends the run and tells its parent.
pub(super) fn finish(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    number: RunNumber,
    ending: Ending,
) -> Outcome<()> {
    let mut run = load(turn, number)?;
    if !run.record.status.is_open() {
        return Ok(());
    }
    let definition = pinned(turn, run.record.definition)?;
    let definition = &definition.definition;
    tear_down(turn, progress, &mut run)?;
    let status = definition
        .status_at(ending.terminal)
        .expect("a run ends at a terminal, never at a step");
    let template = own_output(definition, ending.terminal).or_else(|| {
        definition
            .output
            .as_ref()
            .filter(|_| status == TerminalStatus::Completed)
    });
    set_output(turn, &mut run, template)?;
    run.record.attributes = render::attributes(turn, &run.record, definition)?;
    run.record.status = RunStatus::Ended(status);
    run.record.end = Some(End {
        terminal: ending.terminal,
    });
    run.record.detail = ending.detail.clone();
    run.record.completed_at_ms = Some(turn.now_ms());
    run.note(turn, None, event_of(status, ending));
    if let TriggeredBy::Schedule { .. } = run.record.triggered_by {
        let key = (run.record.namespace.clone(), definition.name.clone());
        schedule::run_ended(turn, &key)?;
    }
    let parent = run.record.parent;
    run.put(turn);
    match parent {
        Some(link) => tell_parent(turn, progress, number, link),
        None => Ok(()),
    }
}

/// Cancels the run; everything late is refused from now on (W18).
pub(super) fn cancel(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    number: RunNumber,
    reason: Option<String>,
) -> Outcome<()> {
    let terminal = Target::BuiltIn(BuiltInTerminal::Cancelled);
    let ending = Ending {
        terminal,
        detail: reason,
    };
    finish(turn, progress, number, ending)
}

/// The output that a terminal has of its own (W4).
fn own_output(definition: &Definition, terminal: Target) -> Option<&Template> {
    match terminal {
        Target::Custom(index) => definition.terminal(index).output.as_ref(),
        Target::BuiltIn(_) | Target::Step(_) => None,
    }
}

fn event_of(status: TerminalStatus, ending: Ending) -> EventKind {
    let Ending { terminal, detail } = ending;
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

/// Takes back everything that the run still waits for.
fn tear_down(turn: &mut Turn<'_, '_>, progress: &mut Progress, run: &mut Loaded) -> Outcome<()> {
    for active in std::mem::take(&mut run.record.active) {
        let at = ActivationRef {
            run: run.number,
            activation: active.number,
        };
        match active.state {
            ActivationState::Executing => {}
            ActivationState::Action(action_run) => task::cancel(turn, action_run)?,
            ActivationState::Plan(plan) => plan::abandon(turn, at, &plan)?,
            ActivationState::Signal { deadline_ms } => {
                if let Some(due_ms) = deadline_ms {
                    turn.clear_timer(signal_timer(at, due_ms));
                }
            }
            ActivationState::Child(child) => {
                let reason = Some(format!("parent {} ended", run.record.id));
                progress.push(Work::Cancel { run: child, reason });
            }
            ActivationState::ChildInput { .. } => {
                turn.delete::<InputChecks>(&(at.run, at.activation));
            }
            ActivationState::Retry { due_ms } | ActivationState::Poll { due_ms } => {
                turn.clear_timer(wake_timer(at, due_ms));
            }
        }
    }
    // Most runs get no signal, and need no look for one that waits.
    if run.record.signals_count > 0 {
        for (key, _) in turn.list::<SignalsWaiting>(&run.number, usize::MAX)? {
            turn.delete::<SignalsWaiting>(&key);
        }
    }
    Ok(())
}

/// The mapping's result, or without one the output of the step left last (W4).
fn set_output(
    turn: &mut Turn<'_, '_>,
    run: &mut Loaded,
    template: Option<&Template>,
) -> Result<(), StoreError> {
    let Some(template) = template else {
        let results = run.record.results.values();
        let last = results.max_by_key(|result| result.order);
        run.record.output = last.and_then(|result| result.output);
        return Ok(());
    };
    let output = render::render(turn, &run.record, template)?.unwrap_or_else(|too_large| {
        let message = format!(
            "expected an output of at most {PAYLOAD_BYTES_MAX} bytes, but it has {} or more",
            too_large.bytes
        );
        Json::error("output_too_large", &message)
    });
    run.record.output = Some(run.store_payload(turn, output));
    Ok(())
}

/// The child's end is its parent's outcome (W17).
pub(super) fn tell_parent(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    child_number: RunNumber,
    link: ParentLink,
) -> Outcome<()> {
    // A quarantined parent is told nothing: its turn would panic in its child's (design rule 10).
    if turn.is_quarantined(link.run) {
        return Ok(());
    }
    let child = load(turn, child_number)?.record;
    // It is gone if it ended, and its retention is over, while the child was set aside.
    let parent = load_if_kept(turn, link.run)?;
    let Some(mut waiting) = parent.and_then(|parent| parent.active_step(link.activation)) else {
        return Ok(());
    };
    let is_completed = child.status == RunStatus::Ended(TerminalStatus::Completed);
    let outcome = name::of(if is_completed {
        name::SUCCESS
    } else {
        name::FAILURE
    });
    let output = match child.output {
        Some(reference) => Some((*payload(turn, reference)?).clone()),
        None if is_completed => None,
        None => Some(error_of(&child)),
    };
    let reason = ended_badly(&child);
    let output = output.map(|output| waiting.run.store_payload(turn, output));
    let kind = EventKind::ChildCompleted {
        child: child.id.clone(),
        outcome: outcome.clone(),
    };
    waiting.note(turn, kind);
    let at = waiting.at();
    waiting.put(turn);
    progress.push(at.settle(Settled {
        outcome,
        output,
        reason: (!is_completed).then_some(reason),
        is_retryable: true,
    }));
    Ok(())
}

/// What a child that failed without any output of its own gives its parent (W10a).
fn error_of(child: &RunRecord) -> Json {
    let message = child.detail.clone();
    Json::error(
        child.status.name(),
        &message.unwrap_or_else(|| ended_badly(child)),
    )
}

/// What a child's end is to its parent, in words.
fn ended_badly(child: &RunRecord) -> String {
    let (id, status) = (&child.id, child.status.name());
    match &child.detail {
        Some(detail) => format!("{id} ended {status}: {detail}"),
        None => format!("{id} ended {status}"),
    }
}
