//! The validation result of a child's input: an obligation fulfilled outside `apply` (W4).

use super::advance::advance_after_wait;
use super::child::{self, Refusal};
use super::outcome::name;
use crate::ids::{Namespace, RunNumber};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::run::work_queue::WorkQueue;
use crate::tables::{
    ActivationState, DefinitionNumber, Definitions, InputChecks, InputVerdict, Work,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Delivers whether a child's input satisfies its workflow's schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideChildInput {
    /// The parent.
    pub parent: RunNumber,
    /// Its activation.
    pub activation: u64,
    /// The definition that the input was checked against.
    pub definition: DefinitionNumber,
    /// What the check found.
    pub verdict: InputVerdict,
}

impl DecideChildInput {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        if turn
            .get::<InputChecks>(&(self.parent, self.activation))?
            .is_none()
        {
            return Err(Rejection::ActivationStale.into());
        }
        let mut run = turn.load_run(self.parent)?;
        if turn.is_quarantined(self.parent) {
            return Err(Rejection::RunQuarantined(run.record.id.clone()).into());
        }
        turn.delete::<InputChecks>(&(self.parent, self.activation));
        let active = run.take(turn, self.activation)?;
        let mut active = active.ok_or(Rejection::ActivationStale)?;
        let ActivationState::ChildInput { definition } = active.state else {
            return Err(Rejection::ActivationStale.into());
        };
        if definition != self.definition {
            return Err(Rejection::InputValidationStale.into());
        }
        // The child may be started in a later entry. Until then, the step awaits no verdict.
        active.state = ActivationState::Executing;
        run.put_back(active);
        turn.put_back_run(run);
        let work = Work::DecideChild {
            activation: self.activation,
            definition,
            verdict: self.verdict.clone(),
        };
        let at = ActivationRef {
            run: self.parent,
            activation: self.activation,
        };
        advance_after_wait(turn, at, work)?;
        Ok(Done {})
    }
}

/// What the check of a child's input gave.
pub(super) struct Decision {
    pub(super) activation: u64,
    pub(super) definition: DefinitionNumber,
    pub(super) verdict: InputVerdict,
}

/// Starts the child, or finishes its step with `execution_failure`.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    decision: Decision,
) -> TurnResult<()> {
    let Some(active) = run.take(turn, decision.activation)? else {
        return Ok(());
    };
    let refusal = match decision.verdict {
        // The workflow may have been disabled during validation (W42).
        InputVerdict::Valid => match child::refusal_of(turn, run, &active)? {
            None if turn.get::<Definitions>(&decision.definition)?.is_none() => {
                // The workflow was deleted and created again during validation.
                run.put_back(active);
                return child::begin(turn, queue, run, decision.activation);
            }
            None => {
                let (number, work) = child::start(turn, run, active, decision.definition)?;
                queue.push(number, work);
                return Ok(());
            }
            Some(refusal) => refusal,
        },
        InputVerdict::Invalid { detail } => Refusal {
            outcome: name::EXECUTION_FAILURE,
            detail: Rejection::InputInvalid(detail).to_string(),
        },
    };
    let work = child::refuse(turn, run, active, refusal);
    queue.push(run.number, work);
    Ok(())
}
