//! Tracking: whether a task's outcome may arrive in a later report (W38).

use crate::definition::{Definition, RunTarget, Tracking};
use crate::ids::ActionRunNumber;
use crate::tables::{ActionRunOwner, Activation, ActivationState, EventKind, PlanEvent};
use crate::turn::{ActivationRef, Turn, TurnResult};

/// An attempt on an executor whose tracking is `async`.
pub(crate) struct TrackedAttempt {
    at: ActivationRef,
    /// How long after its acceptance a report may come, in milliseconds.
    pub(crate) timeout_ms: u64,
}

/// The tracked attempt that an action run for `owner` is. `None` if its outcome must come with the completion: for an
/// executor with tracking `sync`, a step without a plan, or a caller.
pub(crate) fn tracked(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
) -> TurnResult<Option<TrackedAttempt>> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(None);
    };
    let at = ActivationRef { run, activation };
    let mut run = turn.load_run(run)?;
    let definition = run.definition.clone();
    let active = run.activation(turn, activation)?;
    let timeout_ms = active.and_then(|active| report_timeout_ms(&definition.definition, active));
    turn.put_back_run(run);
    Ok(timeout_ms.map(|timeout_ms| TrackedAttempt { at, timeout_ms }))
}

/// The report timeout of the attempt that `active` makes, in milliseconds; `None` if its outcome must come with the
/// completion.
pub(crate) fn report_timeout_ms(definition: &Definition, active: &Activation) -> Option<u64> {
    let ActivationState::Plan(state) = &active.state else {
        return None;
    };
    let RunTarget::Plan(plan) = definition.step(active.step).call(active.call)?.target else {
        return None;
    };
    match definition.plan(plan).executor(state.executor()?).tracking {
        Tracking::Sync => None,
        Tracking::Async { timeout_ms } => Some(timeout_ms),
    }
}

impl TrackedAttempt {
    /// Records in the run's history that a report is awaited.
    pub(crate) fn note_acceptance(
        &self,
        turn: &mut Turn<'_, '_>,
        action_run: ActionRunNumber,
        deadline_at_ms: u64,
    ) -> TurnResult<()> {
        let event = PlanEvent::AwaitingReport {
            action_run,
            deadline_at_ms,
        };
        let mut run = turn.load_run(self.at.run)?;
        run.note_of(turn, self.at.activation, EventKind::Plan(event))?;
        turn.put_back_run(run);
        Ok(())
    }
}
