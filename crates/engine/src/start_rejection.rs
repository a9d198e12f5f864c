//! Why the run id or a concurrency key prevents a start (W20, W84).

use crate::ids::RunId;
use crate::limits::CONCURRENCY_WAITING_MAX;
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why the run id or a concurrency key prevents a start.
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
}

impl StartRejection {
    pub(crate) fn code(&self) -> RejectionCode {
        match self {
            Self::RunIdInUse(_) => RejectionCode::RunIdInUse,
            Self::RunIdReserved(_) => RejectionCode::RunIdReserved,
            Self::LimitReached { .. } | Self::QueueFull(_) => RejectionCode::RunLimitReached,
            Self::ConcurrencyKeyInvalid(_) => RejectionCode::ConcurrencyKeyInvalid,
        }
    }

    /// Whether a concurrency limit is the reason.
    pub(crate) fn is_of_concurrency(&self) -> bool {
        match self {
            Self::LimitReached { .. } | Self::QueueFull(_) | Self::ConcurrencyKeyInvalid(_) => true,
            Self::RunIdInUse(_) | Self::RunIdReserved(_) => false,
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
