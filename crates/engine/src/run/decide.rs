//! The verdict on a child's input: an obligation that is met outside `apply` (W4).

use super::advance;
use super::advance::{Progress, Work};
use super::child::{self, Refusal};
use super::loaded::{ActivationRef, ActiveStep, load};
use super::outcome::name;
use crate::ids::{Namespace, RunNumber};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{ActivationState, DefinitionNumber, InputChecks};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Says whether the input of a child satisfies its workflow's schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideChildInput {
    /// The parent.
    pub parent: RunNumber,
    /// Its activation.
    pub activation: u32,
    /// The definition that the input was checked against.
    pub definition: DefinitionNumber,
    /// What the check found.
    pub verdict: InputVerdict,
}

/// What a check of an input against a schema found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputVerdict {
    /// It satisfies the schema.
    Valid,
    /// It does not.
    Invalid {
        /// The failing path and why.
        detail: String,
    },
}

impl DecideChildInput {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        if turn
            .get::<InputChecks>(&(self.parent, self.activation))?
            .is_none()
        {
            return Err(Rejection::ActivationGone.into());
        }
        let run = load(turn, self.parent)?.record;
        if turn.is_quarantined(self.parent) {
            return Err(Rejection::RunQuarantined(run.id.clone()).into());
        }
        turn.delete::<InputChecks>(&(self.parent, self.activation));
        let active = run
            .activation(self.activation)
            .ok_or(Rejection::ActivationGone)?;
        let ActivationState::ChildInput { definition } = active.state else {
            return Err(Rejection::ActivationGone.into());
        };
        if definition != self.definition {
            return Err(Rejection::InputVerdictStale.into());
        }
        let work = Work::DecideChild {
            run: self.parent,
            activation: self.activation,
            definition,
            verdict: self.verdict.clone(),
        };
        advance::advance(turn, work)?;
        Ok(Done {})
    }
}

/// What the check of a child's input gave.
pub(super) struct Decision {
    pub(super) definition: DefinitionNumber,
    pub(super) verdict: InputVerdict,
}

/// Starts the child, or settles its step with `execution_failure`.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    at: ActivationRef,
    decision: Decision,
) -> Outcome<()> {
    let Some(parent) = ActiveStep::load(turn, at)? else {
        return Ok(());
    };
    let detail = match decision.verdict {
        InputVerdict::Valid => {
            return child::start(turn, progress, parent, decision.definition);
        }
        InputVerdict::Invalid { detail } => Rejection::InputInvalid(detail).to_string(),
    };
    let refusal = Refusal {
        outcome: name::EXECUTION_FAILURE,
        detail,
    };
    child::refuse(turn, progress, parent, refusal)
}
