//! The timers of runs and of active steps.

use crate::ids::RunNumber;
use crate::tables::{Activation, ActivationState, TimerKey, TimerKind};
use crate::turn::{ActivationRef, LoadedRun, Turn};

/// The timer of a retry, of a poll or of a step that waits for a time.
pub(crate) fn wake_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    step_timer(TimerKind::StepWake, at, due_ms)
}

/// The timer of a wait for a signal or a decision.
pub(super) fn deadline_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    step_timer(TimerKind::StepDeadline, at, due_ms)
}

/// Begins a wait that perhaps has a timeout; returns when it expires, in milliseconds.
pub(super) fn set_deadline(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    timeout_ms: Option<u64>,
) -> Option<u64> {
    let due_ms = turn.now_ms().saturating_add(timeout_ms?);
    turn.set_timer(deadline_timer(at, due_ms));
    Some(due_ms)
}

/// Clears the timer of a wait that perhaps expires.
pub(super) fn clear_deadline(
    turn: &mut Turn<'_, '_>,
    at: ActivationRef,
    deadline_at_ms: Option<u64>,
) {
    if let Some(due_ms) = deadline_at_ms {
        turn.clear_timer(deadline_timer(at, due_ms));
    }
}

/// Ends a wait whose signal or decision has arrived. The run may leave the step in a later entry; until then, nothing
/// else may end the wait.
pub(super) fn end_waiting(turn: &mut Turn<'_, '_>, run: &LoadedRun, active: &mut Activation) {
    clear_deadline(turn, run.at(active), active.state.due_ms());
    active.state = ActivationState::Executing;
}

/// A timer of a run as a whole.
pub(super) fn run_timer(kind: TimerKind, run: RunNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind,
        due_ms,
        subject: run.0,
        detail: 0,
    }
}

/// A timer of an active step.
pub(super) fn step_timer(kind: TimerKind, at: ActivationRef, due_ms: u64) -> TimerKey {
    TimerKey {
        kind,
        due_ms,
        subject: at.run.0,
        detail: at.activation,
    }
}
