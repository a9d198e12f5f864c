//! Why an ended run cannot be resumed (W89).

use crate::ids::{RunId, StepName};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why a run cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ResumeRejection {
    /// It has not ended.
    #[error("expected run \"{run_id}\" to have ended, but it is {status}")]
    Open {
        /// The run.
        run_id: RunId,
        /// Its status.
        status: String,
    },
    /// It has completed.
    #[error(
        "expected run \"{0}\" to have failed, timed out or been cancelled, but it has completed"
    )]
    Completed(RunId),
    /// Another attempt at it has begun (W77).
    #[error("expected run \"{run_id}\" to be the last attempt, but \"{latest}\" is")]
    Superseded {
        /// The run.
        run_id: RunId,
        /// The last attempt.
        latest: RunId,
    },
    /// What its steps have done was undone at its end (W82).
    #[error("expected run \"{0}\" to have ended without compensations, but its steps were undone")]
    Compensated(RunId),
    /// Its parent is open and decides about it.
    #[error("expected the parent of run \"{run_id}\" to have ended, but \"{parent}\" is open")]
    ParentOpen {
        /// The run.
        run_id: RunId,
        /// Its parent.
        parent: RunId,
    },
    /// A step that succeeded led to its end.
    #[error(
        "expected a step to continue run \"{run_id}\" from, but the request names none, and {last} succeeded and led to the end"
    )]
    StepNeeded {
        /// The run.
        run_id: RunId,
        /// The step that led to the end.
        last: String,
    },
    /// The run itself has not visited the step.
    #[error(
        "expected a step that run \"{run_id}\" itself has visited, but it has not visited \"{step}\""
    )]
    StepNotVisited {
        /// The run.
        run_id: RunId,
        /// The step.
        step: StepName,
    },
}

impl ResumeRejection {
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::Open { .. } => RejectionCode::RunOpen,
            Self::Completed(_) => RejectionCode::RunCompleted,
            Self::Superseded { .. } => RejectionCode::RunSuperseded,
            Self::Compensated(_) => RejectionCode::RunCompensated,
            Self::ParentOpen { .. } => RejectionCode::ParentOpen,
            Self::StepNeeded { .. } => RejectionCode::ResumeStepNeeded,
            Self::StepNotVisited { .. } => RejectionCode::StepNotVisited,
        }
    }
}
