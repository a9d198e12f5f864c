//! The state of one executor of a plan (W31–W33).

use super::TimeSlice;
use crate::definition::RateWindow;
use crate::ids::RunNumber;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The breaker, the calls and the results of an executor. Only what its settings require is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanExecutorRecord {
    /// Its circuit breaker (W32).
    pub breaker: BreakerState,
    /// Its latest calls, by the window that limits them (W33).
    pub calls: BTreeMap<RateWindow, Vec<TimeSlice>>,
    /// Its latest results, oldest first; at most `HEALTH_SAMPLES_MAX` (W31).
    pub samples: Vec<Sample>,
}

/// The state of a circuit breaker (W32).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakerState {
    /// Calls are let through.
    Closed {
        /// Failed attempts since the last successful one.
        failures_count: u32,
    },
    /// Calls are skipped; from `until_ms` on, probes are let through.
    Open {
        /// In milliseconds.
        until_ms: u64,
    },
    /// The cooldown has passed and probes have been let through.
    HalfOpen {
        /// Those in flight; at most `PROBES_MAX`.
        probes: Vec<Probe>,
    },
}

impl Default for BreakerState {
    fn default() -> Self {
        Self::Closed { failures_count: 0 }
    }
}

/// An attempt that a half-open breaker let through, identified by its activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The run.
    pub run: RunNumber,
    /// Its activation, which makes one attempt at a time.
    pub activation: u64,
}

/// The result of one attempt (W31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// In milliseconds.
    pub at_ms: u64,
    /// What it was.
    pub verdict: Verdict,
}

/// How an attempt counts towards health (W31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// A business result came back, and it was `success`.
    Success,
    /// A business result came back, and it was another.
    Answer,
    /// No business result came back.
    Failure,
}
