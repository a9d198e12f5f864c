//! The backoff of retries and polls (W12, W14).

use serde::{Deserialize, Serialize};

/// The shapes that a delay can grow in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackoffKind {
    /// The initial delay, always.
    Constant,
    /// The initial delay × (k + 1).
    Linear,
    /// The initial delay × coefficient^k.
    #[default]
    Exponential,
    /// As `Exponential`, plus 0–25 % drawn from the entry's seed, before the cap.
    ExponentialJitter,
}

/// How the delay before the k-th retry or poll grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The shape.
    pub kind: BackoffKind,
    /// The delay for k = 0, in milliseconds.
    pub initial_delay_ms: u64,
    /// The cap, in milliseconds. Invariant: not below the initial delay (E401).
    pub max_delay_ms: u64,
    /// What an exponential delay is multiplied by each time, in hundredths; from 100 to 1,000.
    pub coefficient_percent: u16,
}

impl Backoff {
    /// The delay before retry or poll `k` (0 for the first), in milliseconds.
    ///
    /// `random` is any number drawn from the entry's seed; only jitter reads it.
    #[must_use]
    pub fn delay_ms(&self, k: u32, random: u64) -> u64 {
        let delay = match self.kind {
            BackoffKind::Constant => self.initial_delay_ms,
            BackoffKind::Linear => self.initial_delay_ms.saturating_mul(u64::from(k) + 1),
            BackoffKind::Exponential => self.grown_ms(k),
            BackoffKind::ExponentialJitter => {
                let base = self.grown_ms(k);
                let jitter_max = base / 4;
                base.saturating_add(random % jitter_max.saturating_add(1))
            }
        };
        delay.min(self.max_delay_ms)
    }

    /// The initial delay × coefficient^k, rounded down at each step; not above the cap.
    fn grown_ms(&self, k: u32) -> u64 {
        let mut delay_ms = u128::from(self.initial_delay_ms);
        let cap_ms = u128::from(self.max_delay_ms);
        for _ in 0..k {
            let grown_ms = delay_ms * u128::from(self.coefficient_percent) / 100;
            if grown_ms == delay_ms || grown_ms >= cap_ms {
                delay_ms = grown_ms;
                break;
            }
            delay_ms = grown_ms;
        }
        u64::try_from(delay_ms.min(cap_ms)).expect("the cap is one")
    }
}

/// A step's `poll` block (W14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollPolicy {
    /// The wait before the first poll, in milliseconds.
    pub initial_delay_ms: u64,
    /// Polls at most, the first invocation not counted; 1–1000.
    pub max_attempts: u32,
    /// The wait before each poll after the first.
    pub backoff: Backoff,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(kind: BackoffKind) -> Backoff {
        Backoff {
            kind,
            initial_delay_ms: 100,
            max_delay_ms: 1_000,
            coefficient_percent: 200,
        }
    }

    #[test]
    fn each_shape_grows_as_the_manual_says_and_is_capped() {
        let delays = |kind| [0, 1, 2, 9, 200].map(|k| backoff(kind).delay_ms(k, 7));
        assert_eq!(delays(BackoffKind::Constant), [100; 5]);
        assert_eq!(delays(BackoffKind::Linear), [100, 200, 300, 1_000, 1_000]);
        assert_eq!(
            delays(BackoffKind::Exponential),
            [100, 200, 400, 1_000, 1_000]
        );
    }

    #[test]
    fn an_exponential_delay_grows_by_its_coefficient() {
        let delays = |coefficient_percent| {
            let backoff = Backoff {
                coefficient_percent,
                ..backoff(BackoffKind::Exponential)
            };
            [0, 1, 2, 3, 999].map(|k| backoff.delay_ms(k, 7))
        };
        assert_eq!(delays(100), [100; 5]);
        assert_eq!(delays(150), [100, 150, 225, 337, 1_000]);
        assert_eq!(delays(1_000), [100, 1_000, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn jitter_adds_at_most_a_quarter() {
        let all: Vec<u64> = (0..1_000)
            .map(|random| backoff(BackoffKind::ExponentialJitter).delay_ms(1, random))
            .collect();
        assert_eq!(all.iter().min(), Some(&200));
        assert_eq!(all.iter().max(), Some(&250));
    }

    #[test]
    fn a_delay_of_zero_stays_zero() {
        let zero = Backoff {
            kind: BackoffKind::ExponentialJitter,
            initial_delay_ms: 0,
            max_delay_ms: 0,
            coefficient_percent: 200,
        };
        assert_eq!(zero.delay_ms(5, 3), 0);
    }
}
