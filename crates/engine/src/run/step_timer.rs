//! The timers of active steps.

use crate::tables::{TimerKey, TimerKind};
use crate::turn::ActivationRef;

/// The timer of a retry, of a poll or of a step that waits for a time.
pub(crate) fn wake_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    timer(TimerKind::StepWake, at, due_ms)
}

/// The timer of a wait for a signal or a decision.
pub(super) fn deadline_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    timer(TimerKind::StepDeadline, at, due_ms)
}

fn timer(kind: TimerKind, at: ActivationRef, due_ms: u64) -> TimerKey {
    TimerKey {
        kind,
        due_ms,
        subject: at.run.0,
        detail: at.activation,
    }
}
