//! The `retry` blocks of steps and executors (W12, W71).

use super::{Backoff, Expression};
use crate::ids::OutcomeName;
use crate::limits::WAIT_MS_MAX;
use serde::{Deserialize, Serialize};

/// How often something is tried, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; 1–1000.
    pub max_attempts: u32,
    /// The wait before each retry.
    pub delays: RetryDelays,
    /// The time budget from the first attempt's start, in milliseconds.
    pub within_ms: Option<u64>,
}

/// The waits before retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryDelays {
    /// They are computed.
    Backoff(Backoff),
    /// They are listed in milliseconds; the last one repeats. Invariant: at least one.
    Listed(Vec<u64>),
}

impl RetryDelays {
    /// The delay before retry `k` (0 for the first), in milliseconds; for `random`, see [`Backoff::delay_ms`].
    #[must_use]
    pub fn delay_ms(&self, k: u32, random: u64) -> u64 {
        match self {
            Self::Backoff(backoff) => backoff.delay_ms(k, random),
            Self::Listed(delays) => {
                let at = usize::try_from(k).unwrap_or(usize::MAX);
                let delay = delays.get(at).or(delays.last());
                *delay.expect("at least one delay is listed")
            }
        }
    }
}

/// The retry policy of a step, and which of its attempts are retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRetry {
    /// How often, and when.
    pub policy: RetryPolicy,
    /// The outcomes that are retried; `None` is `failure` and `execution_failure` (W12).
    pub on: Option<Vec<OutcomeName>>,
    /// Codes of errors that are not retried.
    pub non_retryable_errors: Vec<String>,
    /// The condition that must hold.
    pub when: Option<Expression>,
    /// Whether the state patches of attempts that have failed are kept (W66).
    pub keep_state: bool,
}

/// A setting of a step that a definition may have a default for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setting<T> {
    /// That of the definition's `defaults`, if it has one.
    #[default]
    Default,
    /// None, whatever the default says.
    Disabled,
    /// That of the step.
    Own(T),
}

impl<T> Setting<T> {
    /// The step's own value.
    #[must_use]
    pub fn own(self) -> Option<T> {
        match self {
            Self::Default | Self::Disabled => None,
            Self::Own(own) => Some(own),
        }
    }

    /// The value that holds.
    pub fn or<'s>(&'s self, default: Option<&'s T>) -> Option<&'s T> {
        match self {
            Self::Default => default,
            Self::Disabled => None,
            Self::Own(own) => Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_listed_delay_repeats() {
        let delays = RetryDelays::Listed(vec![10, 500]);
        assert_eq!(
            [0, 1, 2, 900].map(|k| delays.delay_ms(k, 7)),
            [10, 500, 500, 500]
        );
    }
}

/// How a run that fails is retried as a whole: by another run, which begins from the start (W77).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRetry {
    /// The maximum number of attempts, including the first, from 1.
    pub max_attempts: u32,
    /// The delay before the second attempt, in milliseconds. It doubles with each attempt.
    pub initial_delay_ms: u64,
    /// The maximum delay, in milliseconds; `None` without one.
    pub max_delay_ms: Option<u64>,
    /// Whether a run is also retried that ends `failed` or `timed_out` for another reason than the outcome `retry_run`.
    pub on_failure: bool,
}

impl RunRetry {
    /// The delay of the attempt after `attempts_count` others, in milliseconds.
    pub(crate) fn delay_ms(&self, attempts_count: u32) -> u64 {
        let doublings = attempts_count.saturating_sub(1).min(u64::BITS - 1);
        let delay_ms = u128::from(self.initial_delay_ms) << doublings;
        let max_ms = self.max_delay_ms.unwrap_or(WAIT_MS_MAX).min(WAIT_MS_MAX);
        u64::try_from(delay_ms).map_or(max_ms, |delay_ms| delay_ms.min(max_ms))
    }
}
