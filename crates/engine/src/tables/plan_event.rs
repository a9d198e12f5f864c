//! Plan events in a run's history: the manual's and ours (W23).

use crate::ids::{ExecutorName, OutcomeName};
use serde::{Deserialize, Serialize};

/// A fact about the execution of a plan. Variants are appended, never reordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanEvent {
    /// An attempt on the executor begins.
    ExecutorStart {
        /// The executor.
        executor: ExecutorName,
        /// From 1.
        attempt: u32,
        /// Whether a half-open breaker let it through (W32).
        is_probe: bool,
    },
    /// The executor ended with `success`.
    ExecutorSuccess {
        /// The executor.
        executor: ExecutorName,
    },
    /// The executor ended with another outcome that ends the plan (W34).
    ExecutorOutcome {
        /// The executor.
        executor: ExecutorName,
        /// The outcome.
        outcome: OutcomeName,
    },
    /// The same executor is tried again.
    ExecutorRetry {
        /// The executor.
        executor: ExecutorName,
        /// The attempt that will be made, from 2.
        attempt: u32,
        /// When, in milliseconds.
        due_ms: u64,
    },
    /// The executor ended in an error and is not tried again.
    ExecutorExhausted {
        /// The executor.
        executor: ExecutorName,
        /// Attempts made.
        attempts: u32,
        /// The last error's code (W35).
        code: String,
    },
    /// The executor's breaker lets no call through (W32).
    BreakerSkip {
        /// The executor.
        executor: ExecutorName,
        /// Until when it is open, in milliseconds; `None` while all its probes are in flight.
        until_ms: Option<u64>,
    },
    /// The executor's breaker opened (W32).
    BreakerOpened {
        /// The executor.
        executor: ExecutorName,
        /// Until when, in milliseconds.
        until_ms: u64,
    },
    /// A probe closed the executor's breaker (W32).
    BreakerClosed {
        /// The executor.
        executor: ExecutorName,
    },
    /// The executor has reached its rate limit (W33).
    RateLimited {
        /// The executor.
        executor: ExecutorName,
        /// When the next call is allowed, in milliseconds.
        until_ms: u64,
    },
    /// A cached result was used (W37).
    CacheHit {
        /// Its key.
        key: String,
    },
    /// The fallback was used (W36).
    Fallback {
        /// The outcome that it gives.
        outcome: OutcomeName,
    },
}

impl PlanEvent {
    /// Whether an executor has failed.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::ExecutorRetry { .. }
            | Self::ExecutorExhausted { .. }
            | Self::BreakerOpened { .. }
            | Self::Fallback { .. } => true,
            Self::ExecutorStart { .. }
            | Self::ExecutorSuccess { .. }
            | Self::ExecutorOutcome { .. }
            | Self::BreakerSkip { .. }
            | Self::BreakerClosed { .. }
            | Self::RateLimited { .. }
            | Self::CacheHit { .. } => false,
        }
    }

    /// The size of the texts, in bytes.
    pub(super) fn content_bytes(&self) -> usize {
        match self {
            Self::CacheHit { key } => key.len(),
            Self::ExecutorExhausted { code, .. } => code.len(),
            Self::ExecutorStart { .. }
            | Self::ExecutorSuccess { .. }
            | Self::ExecutorOutcome { .. }
            | Self::ExecutorRetry { .. }
            | Self::BreakerSkip { .. }
            | Self::BreakerOpened { .. }
            | Self::BreakerClosed { .. }
            | Self::RateLimited { .. }
            | Self::Fallback { .. } => 0,
        }
    }
}
