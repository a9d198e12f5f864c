//! Where runs and the scopes below them have stopped: a resume continues there (W89).

use super::{Activation, Ending, PayloadRef, ScopeEnd, ScopeRecord, TargetResult, tables};
use crate::definition::{StepIndex, StepMapping};
use crate::ids::{RunNumber, ScopeNumber, TerminalName};
use serde::{Deserialize, Serialize};

tables! {
    /// Scopes below a run that did not succeed, by run and number, each with its cursor. Live until the step that opened
    /// the scope ends otherwise than with a failure or is entered again, and as long as the run.
    95 ResumableScopes((RunNumber, ScopeNumber)) -> ScopeRecord;
    /// Steps that have opened scopes or called a child and then failed or were cancelled, by run, scope and step. Live until
    /// the step is entered again, and as long as the run.
    96 ResumableSteps((RunNumber, ScopeNumber, StepIndex)) -> Activation;
}

/// Where a run continues when it is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCursor {
    /// The place in the run itself.
    pub at: Cursor,
    /// Whether a step that succeeded led to the end: the caller has to name the step to continue with.
    pub is_after_success: bool,
}

/// Where a run, or a scope below it, continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// A step is entered.
    Step {
        /// The step.
        step: StepIndex,
        /// The visits to it so far.
        visits_count: u32,
        /// Whether the last of them has stopped: what it has begun continues. Otherwise the next visit was about to begin.
        is_entered: bool,
    },
    /// A step that calls nothing is left: it had its result before it stopped.
    FinishStep {
        /// The step.
        step: StepIndex,
        /// The visits to it so far.
        visits_count: u32,
        /// Its result.
        target_result: TargetResult,
    },
    /// The scope ends: its last step was left before it stopped.
    EndScope(ScopeEnd),
    /// The run ends: its last step was left before it stopped.
    Finish {
        /// How it ends.
        ending: Ending,
        /// The name of the terminal, if it is one of the definition: the run may continue with another revision.
        terminal: Option<TerminalName>,
    },
}

impl Cursor {
    /// The step; `None` at the end of the run.
    pub(crate) fn step(&self) -> Option<StepIndex> {
        match self {
            Self::Step { step, .. } | Self::FinishStep { step, .. } => Some(*step),
            Self::EndScope(end) => Some(end.step),
            Self::Finish { .. } => None,
        }
    }

    /// The step that continues or begins; `None` at the end of the scope or the run.
    pub(crate) fn next_step(&self) -> Option<StepIndex> {
        match self {
            Self::Step { step, .. } | Self::FinishStep { step, .. } => Some(*step),
            Self::EndScope(_) | Self::Finish { .. } => None,
        }
    }

    /// The step that was entered and has stopped: what it has begun continues.
    pub(crate) fn entered_step(&self) -> Option<StepIndex> {
        match self {
            Self::Step {
                step,
                is_entered: true,
                ..
            } => Some(*step),
            _ => None,
        }
    }

    /// The cursor in another definition; `None` if that does not have the step.
    pub(crate) fn mapped(mut self, mapping: &StepMapping) -> Option<Self> {
        match &mut self {
            Self::Step { step, .. } | Self::FinishStep { step, .. } => {
                *step = mapping.step(*step)?;
            }
            Self::EndScope(end) => end.step = mapping.step(end.step)?,
            Self::Finish { ending, .. } => {
                let cause = ending.cause.step;
                ending.cause.step = cause.and_then(|step| mapping.step(step));
            }
        }
        Some(self)
    }

    /// The same step, if its next visit was about to begin.
    pub(crate) fn before_entry(self) -> Self {
        match self {
            Self::Step {
                step, visits_count, ..
            } => Self::Step {
                step,
                visits_count,
                is_entered: false,
            },
            other => other,
        }
    }

    /// The payload that it names.
    pub(crate) fn payload(&self) -> Option<PayloadRef> {
        match self {
            Self::FinishStep { target_result, .. } => target_result.output,
            Self::Step { .. } | Self::EndScope(_) | Self::Finish { .. } => None,
        }
    }
}
