//! Inline plans: ordered executors with failover, breakers, rate limits and caching (W30–W38).

use super::{RetryPolicy, step::index};
use crate::extensions::extensions;
use crate::ids::{ActionName, ErrorCode, EventName, ExecutorName, PlanName};
use serde::{Deserialize, Serialize};

index! {
    /// The position of a plan in [`super::Definition::plans`].
    PlanIndex
}
index! {
    /// The position of an executor in [`Plan::executors`].
    ExecutorIndex
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name, unique in the definition.
    pub name: PlanName,
    /// How the order of executors is chosen.
    pub selection: Selection,
    /// At least one (E104), in document order.
    pub executors: Vec<Executor>,
    /// Health tracking; required by [`Selection::HealthWeighted`] (E405).
    pub health: Option<Health>,
    /// The result cache (W37).
    pub cache: Option<Cache>,
    /// What is returned when executors fail (W36).
    pub fallback: Option<Fallback>,
    /// Which error codes are retried (W35).
    pub errors: Option<ErrorClasses>,
    /// What later engine versions added.
    pub extensions: PlanExtensions,
}

extensions! {
    /// Optional fields of a plan that version 1 does not have.
    PlanExtensions {}
}

extensions! {
    /// Optional fields of an executor that version 1 does not have.
    ExecutorExtensions {}
}

impl Plan {
    /// The engine version that it needs.
    pub(super) fn since(&self) -> u32 {
        let executors = self.executors.iter();
        let executors = executors.map(|executor| executor.extensions.since());
        executors.fold(self.extensions.since(), u32::max)
    }

    /// The executor at `index`.
    ///
    /// # Panics
    /// When the index is not of this plan: a bug, since indexes are made with it.
    #[must_use]
    pub fn executor(&self, index: ExecutorIndex) -> &Executor {
        &self.executors[index.position()]
    }
}

/// The four selections (W30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// Priority descending, then document order.
    #[default]
    StaticOrder,
    /// The first executor rotates per plan.
    RoundRobin,
    /// Drawn from the entry's seed.
    Random,
    /// Health descending, ties by priority.
    HealthWeighted,
}

/// One executor of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    /// Its name, unique in the plan (E106).
    pub name: ExecutorName,
    /// The action that it runs.
    pub action: ActionName,
    /// Higher goes first; 100 by default.
    pub priority: i32,
    /// Its own retries, used up before the next executor is tried.
    pub retry: Option<RetryPolicy>,
    /// Its circuit breaker (W32).
    pub breaker: Option<Breaker>,
    /// Its rate limit (W33).
    pub rate_limit: Option<RateLimit>,
    /// Whether its outcome may come later (W38).
    pub tracking: Tracking,
    /// What later engine versions added.
    pub extensions: ExecutorExtensions,
}

/// A circuit breaker's settings (W32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Consecutive failures that open it; at least 1 (E402).
    pub failure_threshold: u32,
    /// How long it stays open, in milliseconds.
    pub cooldown_ms: u64,
    /// Probes in flight while half-open; at least 1 (E402).
    pub half_open_max_calls: u32,
}

/// Sliding-window limits; each is optional (W33, E403).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Calls in any second.
    pub max_per_second: Option<u32>,
    /// Calls in any minute.
    pub max_per_minute: Option<u32>,
    /// Calls in any hour.
    pub max_per_hour: Option<u32>,
}

impl RateLimit {
    /// How many calls `window` may hold; `None` where it is not limited.
    #[must_use]
    pub fn calls_max(&self, window: RateWindow) -> Option<u32> {
        match window {
            RateWindow::Second => self.max_per_second,
            RateWindow::Minute => self.max_per_minute,
            RateWindow::Hour => self.max_per_hour,
        }
    }
}

/// A window in which calls are counted (W33).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RateWindow {
    /// 1,000 ms.
    Second,
    /// 60,000 ms.
    Minute,
    /// 3,600,000 ms.
    Hour,
}

impl RateWindow {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Its length, in milliseconds.
    #[must_use]
    pub fn length_ms(self) -> u64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    /// Its published name: `second`, `minute`, `hour`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }
}

/// How the outcome of a task is reported (W38, W75).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tracking {
    /// With the task's completion.
    #[default]
    Sync,
    /// By a later report.
    Async {
        /// The maximum wait for the report, from the acceptance of the task, in milliseconds; `None` without a limit.
        timeout_ms: Option<u64>,
    },
}

/// Health tracking's settings (W31, E405).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The rolling window, in milliseconds; above 0.
    pub window_ms: u64,
    /// The decay in millionths, 1–1,000,000: the engine computes without floats.
    pub decay_millionths: u32,
    /// Results of the plan in the window before health counts; above 0.
    pub min_samples: u32,
}

/// The result cache's settings (W37, E404).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// In milliseconds; above 0.
    pub ttl_ms: u64,
    /// The key: literals and placeholders `{input.…}` (root `Input`) and `{mapped.…}`.
    pub key: Vec<CacheKeyPart>,
    /// Names of the events that drop the plan's cached results.
    pub invalidate_on: Vec<EventName>,
}

/// A piece of a cache key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheKeyPart {
    /// Text as it is.
    Literal(String),
    /// `{input.…}`: from the run's input.
    Input(Vec<super::Segment>),
    /// `{mapped.…}`: from the step's mapped input.
    Mapped(Vec<super::Segment>),
}

/// What a plan returns when executors fail (W36).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// The output: compact JSON text.
    pub value: String,
    /// When it applies.
    pub condition: FallbackCondition,
}

/// When a fallback applies (W36).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FallbackCondition {
    /// All executors failed or were skipped.
    #[default]
    Exhausted,
    /// The first executor that ends in an error.
    AnyError,
}

/// Which error codes are retried (W35).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorClasses {
    /// When given, a code that is not listed is not retried.
    pub retryable: Option<Vec<ErrorCode>>,
    /// Not retried; the next executor is tried immediately.
    pub fatal: Vec<ErrorCode>,
}
