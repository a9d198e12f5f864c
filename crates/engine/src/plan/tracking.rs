//! Whether a task's outcome may come later (W38).

use crate::definition::{Definition, RunTarget, StepKind, Tracking};
use crate::ids::ActionRunNumber;
use crate::run::{ActivationRef, ActiveStep};
use crate::tables::{ActionRunOwner, Activation, ActivationState, EventKind, PlanEvent};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// An attempt on an executor whose tracking is `async`.
pub(crate) struct Tracked {
    active: ActiveStep,
    /// How long after its acceptance a report may come, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// The attempt that an action run for `owner` is; `None` for one whose outcome must come at once: that
/// of an executor with tracking `sync`, of a step without a plan, or of a caller.
pub(crate) fn tracked(turn: &mut Turn<'_, '_>, owner: ActionRunOwner) -> Outcome<Option<Tracked>> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(None);
    };
    let Some(active) = ActiveStep::load(turn, ActivationRef { run, activation })? else {
        return Ok(None);
    };
    let record = pinned(turn, active.run.record.definition)?;
    let timeout_ms = report_timeout_ms(&record.definition, &active.activation);
    Ok(timeout_ms.map(|timeout_ms| Tracked { active, timeout_ms }))
}

/// How long after its acceptance the outcome of the attempt that `active` makes may come, in
/// milliseconds; `None` where it must come at once.
pub(crate) fn report_timeout_ms(definition: &Definition, active: &Activation) -> Option<u64> {
    let ActivationState::Plan(state) = &active.state else {
        return None;
    };
    let StepKind::Run(step) = &definition.step(active.step).kind else {
        return None;
    };
    let RunTarget::Plan(plan) = step.target else {
        return None;
    };
    match definition.plan(plan).executor(state.executor()?).tracking {
        Tracking::Sync => None,
        Tracking::Async { timeout_ms } => Some(timeout_ms),
    }
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
        self.active.note(turn, EventKind::Plan(event));
    }
}
