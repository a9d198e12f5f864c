//! Why the run id, a concurrency key or another run prevents a start (W20, W84, W85).

use crate::ids::RunId;
use crate::limits::{CONCURRENCY_WAITING_MAX, OPEN_LOCKS_INSTRUCTIONS_MAX, OPEN_LOCKS_MAX};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why the run id, a concurrency key or another run prevents a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum StartRejection {
    /// Another run already has the caller's run id (W20).
    #[error("expected the run id \"{0}\" to be unused, but a run with this id exists")]
    RunIdInUse(RunId),
    /// The caller's run id has the form that only the engine generates (W20).
    #[error("expected a run id that does not begin with \"wfrun-\", but it is \"{0}\"")]
    RunIdReserved(RunId),
    /// A concurrency key is at its limit, or other runs wait for it (W84).
    #[error(
        "expected concurrency key {key} to be below its limit of {limit}, but {}",
        described(holders)
    )]
    LimitReached {
        /// The key.
        key: String,
        /// The limit.
        limit: u32,
        /// The runs that have held it for the longest time.
        holders: Vec<RunId>,
    },
    /// The queue of a concurrency key is full (W84).
    #[error(
        "expected fewer than {CONCURRENCY_WAITING_MAX} runs to wait for concurrency key {0}, but its queue is full"
    )]
    QueueFull(String),
    /// The value of a concurrency key cannot be computed (W84).
    #[error("expected a value for a concurrency key, but {0}")]
    ConcurrencyKeyInvalid(String),
    /// An open run has the same target and input (W85).
    #[error("expected no open run with target \"{target}\" and this input, but run {run} has both")]
    TargetActive {
        /// The target.
        target: String,
        /// The open run.
        run: RunId,
    },
    /// The target matches a lock of an open run (W85).
    #[error(
        "expected target \"{target}\" to match no lock of an open run, but run {run} holds the lock \"{pattern}\""
    )]
    TargetLocked {
        /// The target.
        target: String,
        /// The lock.
        pattern: String,
        /// A run that holds it.
        run: RunId,
    },
    /// The open runs of the namespace hold as many locks as it can have (W85).
    #[error(
        "expected the open runs of the namespace to hold at most {OPEN_LOCKS_MAX} different locks of {OPEN_LOCKS_INSTRUCTIONS_MAX} instructions in all, but this run would add more"
    )]
    LocksTooMany,
    /// The target cannot be computed, or is too long (W85).
    #[error("expected a target, but {0}")]
    TargetInvalid(String),
    /// A lock cannot be computed, or is not a regular expression of the dialect (W85).
    #[error("expected valid locks, but {0}")]
    LocksInvalid(String),
}

impl StartRejection {
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::RunIdInUse(_) => RejectionCode::RunIdInUse,
            Self::RunIdReserved(_) => RejectionCode::RunIdReserved,
            Self::LimitReached { .. } | Self::QueueFull(_) => RejectionCode::RunLimitReached,
            Self::ConcurrencyKeyInvalid(_) => RejectionCode::ConcurrencyKeyInvalid,
            Self::TargetActive { .. } => RejectionCode::TargetActive,
            Self::TargetLocked { .. } => RejectionCode::TargetLocked,
            Self::LocksTooMany => RejectionCode::LocksTooMany,
            Self::TargetInvalid(_) => RejectionCode::TargetInvalid,
            Self::LocksInvalid(_) => RejectionCode::LocksInvalid,
        }
    }

    /// Whether the start would be accepted once other runs have ended.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::LimitReached { .. }
            | Self::QueueFull(_)
            | Self::TargetActive { .. }
            | Self::TargetLocked { .. }
            | Self::LocksTooMany => true,
            Self::RunIdInUse(_)
            | Self::RunIdReserved(_)
            | Self::ConcurrencyKeyInvalid(_)
            | Self::TargetInvalid(_)
            | Self::LocksInvalid(_) => false,
        }
    }

    /// Whether a concurrency limit, a target or a lock is the reason.
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::RunIdInUse(_) | Self::RunIdReserved(_) => false,
            Self::ConcurrencyKeyInvalid(_) | Self::TargetInvalid(_) | Self::LocksInvalid(_) => true,
            Self::LimitReached { .. }
            | Self::QueueFull(_)
            | Self::TargetActive { .. }
            | Self::TargetLocked { .. }
            | Self::LocksTooMany => true,
        }
    }
}

fn described(holders: &[RunId]) -> String {
    if holders.is_empty() {
        return "other runs wait for it".to_owned();
    }
    let holders: Vec<&str> = holders.iter().map(RunId::as_str).collect();
    format!("it is held by {}", holders.join(", "))
}
