//! Whether a task's outcome may come later (W38).

use super::execution::Execution;
use crate::definition::Tracking;
use crate::ids::ActionRunNumber;
use crate::run::{ActivationRef, ActiveStep};
use crate::tables::{ActionRunOwner, ActivationState, PlanEvent};
use crate::turn::{Outcome, Turn};

/// An attempt on an executor whose tracking is `async`.
pub(crate) struct Tracked {
    execution: Execution,
    /// How long after its acceptance a report may come, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// The attempt that an action run for `owner` is; `None` for one whose outcome must come at once: that
/// of an executor with tracking `sync`, of a step without a plan, or of a caller.
pub(crate) fn tracked(turn: &mut Turn<'_, '_>, owner: ActionRunOwner) -> Outcome<Option<Tracked>> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(None);
    };
    let at = ActivationRef { run, activation };
    let active = ActiveStep::load(turn, at)?;
    let Some(ActivationState::Plan(state)) = active.map(|active| active.activation.state) else {
        return Ok(None);
    };
    let execution = Execution::load(turn, at)?;
    let (Some(execution), Some(index)) = (execution, state.executor()) else {
        return Ok(None);
    };
    Ok(match execution.executor(index).tracking {
        Tracking::Sync => None,
        Tracking::Async { timeout_ms } => Some(Tracked {
            execution,
            timeout_ms,
        }),
    })
}

impl Tracked {
    /// Notes in the run's history that a report is awaited.
    pub(crate) fn note_acceptance(
        &self,
        turn: &mut Turn<'_, '_>,
        action_run: ActionRunNumber,
        deadline_ms: u64,
    ) {
        let event = PlanEvent::AwaitingReport {
            action_run,
            deadline_ms,
        };
        self.execution.event(turn, event);
    }
}
