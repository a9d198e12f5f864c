//! Why an ended run cannot be resumed or retried (W89, W90).

use crate::ids::{RunId, StepName, WorkflowVersion};
use crate::limits::{REMAPPED_ROWS_MAX, RUN_REVISIONS_MAX, TAKEN_OVER_BYTES_MAX};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run cannot be resumed, or retried from a step.
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
    /// What its steps have done was undone: at its end (W82), or, for a retry from a step, at any time (W82a).
    #[error("expected run \"{0}\" to have executed no compensation, but it has")]
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
    #[error("expected a top-level step that run \"{run_id}\" has visited, but {found}")]
    StepNotVisited {
        /// The run.
        run_id: RunId,
        /// What is wrong with the step that was named.
        found: String,
    },
    /// The steps of the revision differ from those with which the run has stopped.
    #[error("{0}")]
    Drift(Box<Drift>),
    /// It was resumed with other revisions too often.
    #[error(
        "expected run \"{0}\" to change its revision at most {RUN_REVISIONS_MAX} times, but it has already done so"
    )]
    TooManyRevisions(RunId),
    /// It has too many rows to assign to the steps of another revision.
    #[error(
        "expected run \"{0}\" to have at most {REMAPPED_ROWS_MAX} results, scopes, compensations and signals to assign to \
         the steps of another revision, but it has more"
    )]
    TooManyRows(RunId),
    /// A part of the history was trimmed that says what the step had seen (W90).
    #[error(
        "expected the history of run \"{run_id}\" to be complete up to its first visit to step \"{step}\", but events were \
         trimmed"
    )]
    HistoryTrimmed {
        /// The run.
        run_id: RunId,
        /// The step.
        step: StepName,
    },
    /// The new run cannot take over what the step had seen (W90).
    #[error(
        "expected the results and the state of run \"{run_id}\" before step \"{step}\" to total at most \
         {TAKEN_OVER_BYTES_MAX} bytes, but they are larger"
    )]
    ResultsTooLarge {
        /// The run.
        run_id: RunId,
        /// The step.
        step: StepName,
    },
}

/// How a revision differs from the one with which a run has stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The run.
    pub run_id: RunId,
    /// The signature of its revision (W88).
    pub saved_signature: String,
    /// The version that was asked for.
    pub version: WorkflowVersion,
    /// The revision of the version, 1, 2, 3 …
    pub revision: u32,
    /// Its signature.
    pub signature: String,
    /// How its steps differ, a sentence each; the first [`LISTED_MAX`](Self::LISTED_MAX).
    pub differences: Vec<String>,
    /// Steps that have a good outcome; the first [`LISTED_MAX`](Self::LISTED_MAX).
    pub completed: Vec<StepName>,
    /// The steps with which the run and the scopes below it would continue, the outermost one first; the first
    /// [`LISTED_MAX`](Self::LISTED_MAX). Empty if the run would end.
    pub pending: Vec<StepName>,
    /// Whether `force` was set. If so, `differences` lists only what keeps the run from continuing.
    pub is_forced: bool,
}

impl Drift {
    /// The maximum number of steps and differences that are listed.
    pub const LISTED_MAX: usize = 10;
}

impl fmt::Display for Drift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run_id,
            saved_signature,
            version,
            revision,
            signature,
            differences,
            completed,
            pending,
            is_forced,
        } = self;
        let differences = differences.join(", ");
        if *is_forced {
            return write!(
                out,
                "expected version {version} revision {revision} to have the steps and compensations that run \"{run_id}\" \
                 needs, but {differences}"
            );
        }
        if signature == saved_signature {
            return write!(
                out,
                "expected version {version} revision {revision} to keep all compensations, because run \"{run_id}\" may have \
                 to execute some, but {differences}"
            );
        }
        write!(
            out,
            "expected a revision with the steps of run \"{run_id}\" (signature {saved_signature}), \
             but those of version {version} revision {revision} differ (signature {signature}): {differences}"
        )?;
        for (what, steps) in [("completed", completed), ("pending", pending)] {
            if !steps.is_empty() {
                let names: Vec<&str> = steps.iter().map(StepName::as_str).collect();
                write!(out, "; {what} steps: {}", names.join(", "))?;
            }
        }
        Ok(())
    }
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
            Self::Drift(_) => RejectionCode::WorkflowDrift,
            Self::TooManyRevisions(_) => RejectionCode::RunRevisionsTooMany,
            Self::TooManyRows(_) => RejectionCode::ResumeTooLarge,
            Self::HistoryTrimmed { .. } => RejectionCode::HistoryTrimmed,
            Self::ResultsTooLarge { .. } => RejectionCode::ResultsTooLarge,
        }
    }
}
