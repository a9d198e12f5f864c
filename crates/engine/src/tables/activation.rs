//! Steps under way, and what steps ended with.

use super::{DefinitionNumber, PayloadRef, PlanState, PlanWait, tables};
use crate::definition::StepIndex;
use crate::ids::{ActionRunNumber, OutcomeName, RunNumber};
use serde::{Deserialize, Serialize};

tables! {
    /// By run and number. Live while the step is under way.
    62 Activations((RunNumber, u32)) -> Activation, HOT;
    /// By run and step: the last time that the step was left. Live as long as the run.
    63 StepResults((RunNumber, StepIndex)) -> StepResult, HOT;
}

/// A step under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Unique within the run.
    pub number: u32,
    /// The step.
    pub step: StepIndex,
    /// The step's attempt, from 1; the action's own attempts are not counted (W13).
    pub attempt: u32,
    /// Polls made since the last attempt began (W14).
    pub polls_count: u32,
    /// When the first attempt began: `within_ms` counts from here (W12). In milliseconds.
    pub started_at_ms: u64,
    /// The mapped input.
    pub input: PayloadRef,
    /// What it waits for.
    pub state: ActivationState,
}

/// What an active step waits for (W21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActivationState {
    /// Nothing: it is executed in this very turn.
    Executing,
    /// An action run.
    Action(ActionRunNumber),
    /// A signal, perhaps until a deadline in milliseconds.
    Signal {
        /// When the wait expires.
        deadline_ms: Option<u64>,
    },
    /// A child run.
    Child(RunNumber),
    /// The verdict on a child's input (W4).
    ChildInput {
        /// The child's definition.
        definition: DefinitionNumber,
    },
    /// The next attempt, at a time in milliseconds.
    Retry {
        /// When it is made.
        due_ms: u64,
    },
    /// The next poll, at a time in milliseconds.
    Poll {
        /// When it is made.
        due_ms: u64,
    },
    /// A plan that is executed.
    Plan(PlanState),
}

/// What an activation waits for, by its number. An outcome that comes from anything else is too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaited {
    /// Nothing from elsewhere: the turn that works on it settles it.
    Nothing,
    /// An action run, of the step or of its plan.
    Action(ActionRunNumber),
    /// A child run.
    Child(RunNumber),
    /// A signal.
    Signal,
    /// The verdict on a child's input.
    Verdict,
    /// A time.
    Time,
}

impl ActivationState {
    /// What is waited for.
    #[must_use]
    pub fn awaits(&self) -> Awaited {
        match self {
            Self::Executing => Awaited::Nothing,
            Self::Action(number) => Awaited::Action(*number),
            Self::Plan(plan) => match plan.wait {
                PlanWait::Executing => Awaited::Nothing,
                PlanWait::Action(number) => Awaited::Action(number),
                PlanWait::Retry { .. } => Awaited::Time,
            },
            Self::Signal { .. } => Awaited::Signal,
            Self::Child(number) => Awaited::Child(*number),
            Self::ChildInput { .. } => Awaited::Verdict,
            Self::Retry { .. } | Self::Poll { .. } => Awaited::Time,
        }
    }

    /// Whether the step is worked on, now or in a later entry, rather than waited for.
    #[must_use]
    pub fn is_executing(&self) -> bool {
        self.awaits() == Awaited::Nothing
    }

    /// The action run that is waited for, a plan's included.
    #[must_use]
    pub fn action_run(&self) -> Option<ActionRunNumber> {
        match self.awaits() {
            Awaited::Action(number) => Some(number),
            Awaited::Nothing
            | Awaited::Child(_)
            | Awaited::Signal
            | Awaited::Verdict
            | Awaited::Time => None,
        }
    }
}

/// What a step ended with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output.
    pub output: Option<PayloadRef>,
    /// Attempts made.
    pub attempts: u32,
    /// When its first attempt began, in milliseconds.
    pub started_at_ms: u64,
    /// When it was left, in milliseconds.
    pub completed_at_ms: u64,
    /// Counts the steps that the run has left, so that the last one is known.
    pub order: u32,
}
