//! When steps, and attempts at them, have taken too long (W70).

use super::step_timer::step_timer;
use crate::store::StoreError;
use crate::tables::{Activation, ActivationState, QueuedChild, StepTimeout, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};

/// Begins to count the time of a call or of a step that opens blocks; a former call no longer counts.
pub(super) fn start_total(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &mut Draft<Activation>,
) {
    let at = run.at(active);
    if let Some(due_ms) = active.timeouts.total_ends_at_ms {
        turn.clear_timer(total_timer(at, due_ms));
        active.timeouts.total_ends_at_ms = None;
    }
    let definition = &run.definition.definition;
    if let Some(total_ms) = definition.total_ms(active.step, active.call) {
        let due_ms = turn.now_ms().saturating_add(total_ms);
        turn.set_timer(total_timer(at, due_ms));
        active.timeouts.total_ends_at_ms = Some(due_ms);
    }
}

/// Begins to count the time of an attempt, unless it is counted already: its polls belong to it.
pub(super) fn start_attempt(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &mut Draft<Activation>,
) {
    let definition = &run.definition.definition;
    let attempt_ms = definition.timeouts(active.step, active.call).attempt_ms;
    if active.timeouts.attempt_ends_at_ms.is_none() {
        count_down(turn, run.at(active), active, attempt_ms);
    }
}

/// The child of a step waits for its concurrency keys (W84): until it begins, the time in the queue counts, and that of the
/// attempt stands still.
pub(super) fn start_queue(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &mut Draft<Activation>,
) {
    let at = run.at(active);
    let attempt_left_ms = active
        .timeouts
        .attempt_ends_at_ms
        .map(|ends_at_ms| ends_at_ms.saturating_sub(turn.now_ms()));
    stop_attempt(turn, at, active);
    active.timeouts.queued_child = Some(QueuedChild { attempt_left_ms });
    let definition = &run.definition.definition;
    let queue_ms = definition.timeouts(active.step, active.call).queue_ms;
    count_down(turn, at, active, queue_ms);
}

/// The child begins: the time of the attempt counts again.
pub(super) fn end_queue(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
) {
    if let Some(queued) = active.timeouts.queued_child {
        stop_attempt(turn, at, active);
        count_down(turn, at, active, queued.attempt_left_ms);
    }
}

/// Sets the deadline of an attempt.
fn count_down(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
    left_ms: Option<u64>,
) {
    if let Some(left_ms) = left_ms {
        let due_ms = turn.now_ms().saturating_add(left_ms);
        turn.set_timer(attempt_timer(at, due_ms));
        active.timeouts.attempt_ends_at_ms = Some(due_ms);
    }
}

/// A worker has taken the task of a step: from now on, the time of the attempt counts.
pub(crate) fn note_taken(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let definition = run.definition.clone();
    let active = run.activation(turn, activation)?;
    let is_counted = active.is_some_and(|active| {
        let timeouts = definition.definition.timeouts(active.step, active.call);
        let is_of_step = matches!(active.state, ActivationState::Action(_));
        is_of_step && timeouts.attempt_ms.is_some() && active.timeouts.attempt_ends_at_ms.is_none()
    });
    if is_counted && let Some(mut active) = run.take(turn, activation)? {
        start_attempt(turn, run, &mut active);
        run.put_back(active);
    }
    Ok(())
}

/// The attempt has ended.
pub(super) fn stop_attempt(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
) {
    if let Some(due_ms) = active.timeouts.attempt_ends_at_ms {
        turn.clear_timer(attempt_timer(at, due_ms));
        active.timeouts.attempt_ends_at_ms = None;
    }
    if active.timeouts.queued_child.is_some() {
        active.timeouts.queued_child = None;
    }
}

/// Sets a timer that has fired too early again, so that it fires after what is deferred.
pub(super) fn fire_again(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
    timeout: StepTimeout,
) {
    let due_ms = turn.now_ms();
    match timeout {
        StepTimeout::Total => {
            turn.set_timer(total_timer(at, due_ms));
            active.timeouts.total_ends_at_ms = Some(due_ms);
        }
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            turn.set_timer(attempt_timer(at, due_ms));
            active.timeouts.attempt_ends_at_ms = Some(due_ms);
        }
    }
}

/// Neither the attempt nor the step can take too long from now on: the step is cancelled.
pub(super) fn stop(turn: &mut Turn<'_, '_>, at: ActivationRef, active: &mut Draft<Activation>) {
    clear(turn, at, active);
    active.timeouts.attempt_ends_at_ms = None;
    active.timeouts.total_ends_at_ms = None;
}

/// Clears the timers of a step that the run leaves.
pub(super) fn clear(turn: &mut Turn<'_, '_>, at: ActivationRef, active: &Activation) {
    if let Some(due_ms) = active.timeouts.attempt_ends_at_ms {
        turn.clear_timer(attempt_timer(at, due_ms));
    }
    if let Some(due_ms) = active.timeouts.total_ends_at_ms {
        turn.clear_timer(total_timer(at, due_ms));
    }
}

/// Restores the timers of a step of a released run, which may have fired without effect.
pub(super) fn restore(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    active: &mut Draft<Activation>,
) -> Result<(), StoreError> {
    if let Some(due_ms) = active.timeouts.attempt_ends_at_ms {
        let due_ms = timer::restore(turn, attempt_timer(at, due_ms))?;
        active.timeouts.attempt_ends_at_ms = Some(due_ms);
    }
    if let Some(due_ms) = active.timeouts.total_ends_at_ms {
        let due_ms = timer::restore(turn, total_timer(at, due_ms))?;
        active.timeouts.total_ends_at_ms = Some(due_ms);
    }
    Ok(())
}

fn total_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    step_timer(TimerKind::StepTotal, at, due_ms)
}

fn attempt_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    step_timer(TimerKind::StepAttempt, at, due_ms)
}
