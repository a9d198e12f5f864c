//! Whether a task's outcome may come later (W38).

use crate::definition::{Definition, RunTarget, StepKind, Tracking};
use crate::ids::ActionRunNumber;
use crate::run::{self, ActivationRef};
use crate::tables::{ActionRunOwner, Activation, ActivationState, EventKind, PlanEvent};
use crate::turn::{Outcome, Turn};

/// An attempt on an executor whose tracking is `async`.
pub(crate) struct Tracked {
    at: ActivationRef,
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
    let mut run = run::load(turn, run)?;
    let definition = run.definition.clone();
    let active = run.activation(turn, activation)?;
    let timeout_ms = active.and_then(|active| report_timeout_ms(&definition.definition, active));
    run::put_back(turn, run);
    Ok(timeout_ms.map(|timeout_ms| Tracked { at, timeout_ms }))
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
    ) -> Outcome<()> {
        let event = PlanEvent::AwaitingReport {
            action_run,
            deadline_ms,
        };
        let mut run = run::load(turn, self.at.run)?;
        run.note_of(turn, self.at.activation, EventKind::Plan(event))?;
        run::put_back(turn, run);
        Ok(())
    }
}
