//! A run reaches a terminal, or is cancelled (W17, W18, W4).

use super::advance::{Progress, Settled, Work};
use super::enter::signal_timer;
use super::open::{load, payload, store_payload};
use super::outcome::name;
use super::render;
use super::settle::wake_timer;
use crate::definition::{BuiltInTerminal, Definition, Target, Template, TerminalStatus};
use crate::ids::RunNumber;
use crate::json::Json;
use crate::store::StoreError;
use crate::tables::{
    ActivationState, End, Event, EventKind, InputChecks, ParentLink, RunRecord, RunStatus, Runs,
    SignalsWaiting,
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
    if !run.status.is_open() {
        return Ok(());
    }
    let definition = pinned(turn, run.definition)?;
    let definition = &definition.definition;
    tear_down(turn, progress, (number, &mut run))?;
    let (status, own_output) = describe(definition, ending.terminal);
    let template = own_output.or_else(|| {
        definition
            .output
            .as_ref()
            .filter(|_| status == TerminalStatus::Completed)
    });
    set_output(turn, (number, &mut run), template)?;
    run.attributes = render::attributes(turn, &run, definition)?;
    run.status = RunStatus::Ended(status);
    run.end = Some(End {
        terminal: ending.terminal,
    });
    run.detail = ending.detail.clone();
    run.completed_at_ms = Some(turn.now_ms());
    turn.event(
        number,
        Event {
            step: None,
            kind: event_of(status, ending),
        },
    );
    let parent = run.parent;
    turn.put::<Runs>(&number, run);
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
    finish(
        turn,
        progress,
        number,
        Ending {
            terminal,
            detail: reason,
        },
    )
}

fn describe(definition: &Definition, terminal: Target) -> (TerminalStatus, Option<&Template>) {
    match terminal {
        Target::BuiltIn(terminal) => (terminal.status(), None),
        Target::Custom(index) => {
            let terminal = definition.terminal(index);
            (terminal.status, terminal.output.as_ref())
        }
        Target::Step(_) => panic!("a run ends at a terminal, never at a step"),
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
        TerminalStatus::TimedOut => EventKind::WorkflowTimedOut { terminal },
    }
}

/// Takes back everything that the run still waits for.
fn tear_down(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, run): (RunNumber, &mut RunRecord),
) -> Result<(), StoreError> {
    for active in std::mem::take(&mut run.active) {
        match active.state {
            ActivationState::Executing => {}
            ActivationState::Action(action_run) => task::cancel(turn, action_run)?,
            ActivationState::Signal { deadline_ms } => {
                if let Some(due_ms) = deadline_ms {
                    turn.clear_timer(signal_timer(number, active.number, due_ms));
                }
            }
            ActivationState::Child(child) => {
                let reason = Some(format!("parent {} ended", run.id));
                progress.push(Work::Cancel { run: child, reason });
            }
            ActivationState::ChildInput { .. } => {
                turn.delete::<InputChecks>(&(number, active.number));
            }
            ActivationState::Retry { due_ms } | ActivationState::Poll { due_ms } => {
                turn.clear_timer(wake_timer(number, active.number, due_ms));
            }
        }
    }
    for (key, _) in turn.list::<SignalsWaiting>(&number, usize::MAX)? {
        turn.delete::<SignalsWaiting>(&key);
    }
    Ok(())
}

/// The mapping's result, or without one the output of the step left last (W4).
fn set_output(
    turn: &mut Turn<'_, '_>,
    (number, run): (RunNumber, &mut RunRecord),
    template: Option<&Template>,
) -> Result<(), StoreError> {
    let Some(template) = template else {
        let last = run.results.values().max_by_key(|result| result.order);
        run.output = last.and_then(|result| result.output);
        return Ok(());
    };
    let output = render::render(turn, run, template)?.unwrap_or_else(|too_large| {
        let bytes_max = crate::limits::PAYLOAD_BYTES_MAX;
        let message = format!(
            "expected an output of at most {bytes_max} bytes, but it has {} or more",
            too_large.bytes
        );
        Json::error("output_too_large", &message)
    });
    run.output = Some(store_payload(turn, number, run, output));
    Ok(())
}

/// The child's end is its parent's outcome (W17).
fn tell_parent(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    child_number: RunNumber,
    link: ParentLink,
) -> Outcome<()> {
    // A quarantined parent is told nothing: its turn would panic in its child's (design rule 10).
    if turn.is_quarantined(link.run) {
        return Ok(());
    }
    let mut parent = load(turn, link.run)?;
    let child = load(turn, child_number)?;
    let Some(active) = parent.activation(link.activation).cloned() else {
        return Ok(());
    };
    let is_completed = child.status == RunStatus::Ended(TerminalStatus::Completed);
    let outcome = name::of(if is_completed {
        name::SUCCESS
    } else {
        name::FAILURE
    });
    let output = match child.output {
        Some(reference) => {
            let output = payload(turn, reference)?;
            Some(store_payload(
                turn,
                link.run,
                &mut parent,
                (*output).clone(),
            ))
        }
        None if is_completed => None,
        None => {
            let error = error_of(&child);
            Some(store_payload(turn, link.run, &mut parent, error))
        }
    };
    turn.put::<Runs>(&link.run, parent);
    let kind = EventKind::ChildCompleted {
        child: child.id,
        outcome: outcome.clone(),
    };
    turn.event(
        link.run,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    let settled = Settled {
        outcome,
        output,
        is_retryable: true,
    };
    progress.push(Work::Settle {
        run: link.run,
        activation: link.activation,
        settled,
    });
    Ok(())
}

/// What a child that failed without any output of its own gives its parent (W10a).
fn error_of(child: &RunRecord) -> Json {
    let status = child.status.name();
    let message = child.detail.clone();
    Json::error(
        status,
        &message.unwrap_or_else(|| format!("{} ended {status}", child.id)),
    )
}
