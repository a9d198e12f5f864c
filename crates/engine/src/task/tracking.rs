//! Tracking: whether the outcome of a task may arrive in a later report (W38, W75).

use crate::definition::{CallRole, Definition, RunTarget, Tracking};
use crate::tables::{ActionRunOwner, Activation};
use crate::turn::{Turn, TurnResult};

/// A task that can be accepted.
pub(super) struct TrackedTask {
    /// The maximum wait for the report, in milliseconds; `None` without a limit.
    pub(super) timeout_ms: Option<u64>,
}

/// The tracked task of an action run for `owner`; `None` if its outcome must come with the completion.
pub(super) fn tracked(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
) -> TurnResult<Option<TrackedTask>> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(None);
    };
    let mut run = turn.load_run(run)?;
    let definition = run.definition.clone();
    let active = run.activation(turn, activation)?;
    let tracking = active.map(|active| tracking_of(&definition.definition, active));
    turn.put_back_run(run);
    Ok(match tracking {
        Some(Tracking::Async { timeout_ms }) => Some(TrackedTask { timeout_ms }),
        Some(Tracking::Sync) | None => None,
    })
}

/// How the outcome of the attempt that `active` makes is reported: as its executor says, or its step.
pub(crate) fn tracking_of(definition: &Definition, active: &Activation) -> Tracking {
    let step = definition.step(active.step);
    let Some(call) = step.call(active.call) else {
        return Tracking::Sync;
    };
    match (&call.target, active.call) {
        (RunTarget::Plan(plan), _) => {
            let executor = active.state.plan().and_then(|state| state.executor());
            executor.map_or(Tracking::Sync, |executor| {
                definition.plan(*plan).executor(executor).tracking
            })
        }
        (RunTarget::Action(_), CallRole::Target) => {
            step.run().map_or(Tracking::Sync, |run| run.tracking)
        }
        (RunTarget::Action(_) | RunTarget::Workflow { .. }, _) => Tracking::Sync,
    }
}
