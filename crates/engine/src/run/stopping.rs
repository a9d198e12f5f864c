//! Stopping a step: what it waits for is cancelled. The step ends when that has ended (W54).

use super::step_timer::{clear_deadline, wake_timer};
use super::{approval, index, linked_attempts};
use crate::ids::RunNumber;
use crate::tables::{Activation, ActivationState, SchemaChecks};
use crate::task::CancelMode;
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::{plan, task};

/// What a step that was stopped still waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It waits for nothing.
    Ended,
    /// It waits for nothing, but its child has to be cancelled.
    ChildAbandoned(RunNumber),
    /// The worker that holds its task.
    AwaitsWorker,
    /// The end of its child, which has to be cancelled.
    AwaitsChild(RunNumber),
}

/// Cancels what an active step waits for.
pub(super) fn stop(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> TurnResult<Stopped> {
    let step = run.definition.definition.step(active.step);
    let mode = match step.is_abandoned() {
        true => CancelMode::Abandon,
        false => CancelMode::Wait,
    };
    stop_in(turn, run, active, mode)
}

/// Cancels what an active step waits for, without waiting for anything; returns its child.
pub(super) fn force(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
) -> TurnResult<Option<RunNumber>> {
    Ok(match stop_in(turn, run, active, CancelMode::Force)? {
        Stopped::ChildAbandoned(child) | Stopped::AwaitsChild(child) => Some(child),
        Stopped::Ended | Stopped::AwaitsWorker => None,
    })
}

fn stop_in(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    mode: CancelMode,
) -> TurnResult<Stopped> {
    let at = run.at(active);
    let mut is_result_awaited = false;
    match &active.state {
        // A resume needs what is known of its scopes.
        ActivationState::Executing
        | ActivationState::Branches(_)
        | ActivationState::Iterations(_) => {}
        ActivationState::Action(action_run) => {
            is_result_awaited = task::cancel(turn, *action_run, mode)?;
        }
        ActivationState::Plan(_) => {
            is_result_awaited = plan::abandon(turn, run, active, mode)?;
        }
        ActivationState::Signal(wait) => {
            clear_deadline(turn, at, wait.deadline_at_ms);
        }
        ActivationState::Approval(approval) => {
            approval::forget(turn, at)?;
            clear_deadline(turn, at, approval.deadline_at_ms);
        }
        ActivationState::Child(child) => return stop_child(turn, *child, mode),
        ActivationState::ChildInput { .. } | ActivationState::OutputCheck(_) => {
            turn.delete::<SchemaChecks>(&(at.run, at.activation));
        }
        ActivationState::Retry { due_ms }
        | ActivationState::Poll { due_ms }
        | ActivationState::Timer { due_ms }
        | ActivationState::Delay { due_ms } => {
            turn.clear_timer(wake_timer(at, *due_ms));
        }
    }
    Ok(match is_result_awaited {
        true => Stopped::AwaitsWorker,
        false => Stopped::Ended,
    })
}

fn stop_child(turn: &mut Turn<'_, '_>, child: RunNumber, mode: CancelMode) -> TurnResult<Stopped> {
    let first = child;
    let child = linked_attempts::latest(turn, first)?;
    let record = turn.run_record(child)?;
    // Its result may have been deferred.
    let has_ended = record.is_some_and(|child| !child.status.is_open());
    let waits = mode == CancelMode::Wait || (mode == CancelMode::Abandon && has_ended);
    if waits {
        return Ok(Stopped::AwaitsChild(child));
    }
    index::expire_child(turn, first)?;
    index::expire_child(turn, child)?;
    Ok(Stopped::ChildAbandoned(child))
}
