//! Why an open run refuses a signal, a decision, a report, a touch, an info entry or a cancellation (W54, W61, W61a, W75,
//! W81, W92).

use crate::ids::{ActionRunNumber, RunId, ScopePathText, SignalType};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why a signal, a decision, a report, a touch or a cancellation was refused, although its run is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Undeliverable {
    /// The run has no such scope.
    #[error("expected a scope \"{scope}\" in run \"{run_id}\", but there is none")]
    ScopeNotFound {
        /// The run.
        run_id: RunId,
        /// The path.
        scope: ScopePathText,
    },
    /// The scope has ended.
    #[error("expected scope \"{scope}\" of run \"{run_id}\" to be open, but it has ended")]
    ScopeEnded {
        /// The run.
        run_id: RunId,
        /// The path.
        scope: ScopePathText,
    },
    /// No such step waits for a decision (W61).
    #[error("expected {named} of run \"{run_id}\" to wait for a decision, but none does")]
    ApprovalNotOpen {
        /// The run.
        run_id: RunId,
        /// The step, as the caller named it.
        named: String,
    },
    /// No such step waits for a report (W75).
    #[error(
        "expected {named} of run \"{run_id}\" to wait for a report on an accepted task, but none does"
    )]
    StepNotWaiting {
        /// The run.
        run_id: RunId,
        /// The step, as the caller named it.
        named: String,
    },
    /// Several steps wait for a decision or a report (W61, W75).
    #[error("expected one step of run \"{run_id}\" to match, but several do: {open}")]
    ScopeNeeded {
        /// The run.
        run_id: RunId,
        /// Some of the steps.
        open: String,
    },
    /// The signals that wait in the run have reached their limit in number or in bytes.
    #[error(
        "expected capacity for another signal in run \"{0}\", but its waiting signals have reached their limit"
    )]
    SignalLimitExceeded(RunId),
    /// The end of the run is already decided (W83).
    #[error(
        "expected run \"{run_id}\" to be cancellable, but its end is decided: it is in phase {phase}"
    )]
    RunEnding {
        /// The run.
        run_id: RunId,
        /// The phase.
        phase: String,
    },
    /// The attempt ends, and another one will follow, which does not take over its signals (W77).
    #[error(
        "expected run \"{0}\" to take signals, but it is about to be retried: what it has done is being undone"
    )]
    RunRetrying(RunId),
    /// The task is cancelled: its step waits only for the worker's answer (W54).
    #[error("expected a task that is not cancelled, but action run \"{0}\" is cancelled")]
    TaskCancelled(ActionRunNumber),
    /// The task belongs to a stand-alone action run, which has no info entries (W92).
    #[error("expected a task of a workflow run, but action run \"{0}\" belongs to none")]
    TaskWithoutRun(ActionRunNumber),
    /// The type of the signal is the engine's own.
    #[error("expected a signal type that does not begin with `approval.`, but it is \"{0}\"")]
    SignalTypeReserved(SignalType),
}

impl Undeliverable {
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::ScopeNotFound { .. } => RejectionCode::ScopeNotFound,
            Self::ScopeEnded { .. } => RejectionCode::ScopeEnded,
            Self::SignalLimitExceeded(_) => RejectionCode::SignalLimitExceeded,
            Self::ApprovalNotOpen { .. } => RejectionCode::ApprovalNotOpen,
            Self::StepNotWaiting { .. } => RejectionCode::StepNotWaiting,
            Self::ScopeNeeded { .. } => RejectionCode::ScopeNeeded,
            Self::RunEnding { .. } => RejectionCode::RunEnding,
            Self::RunRetrying(_) => RejectionCode::RunRetrying,
            Self::TaskCancelled(_) => RejectionCode::TaskCancelled,
            Self::TaskWithoutRun(_) => RejectionCode::TaskWithoutRun,
            Self::SignalTypeReserved(_) => RejectionCode::SignalTypeReserved,
        }
    }
}
