//! Quantiles of a few measured times.

use std::time::Duration;

use anyhow::{Result, ensure};

/// Sorted times.
pub(super) struct Quantiles {
    /// Invariant: sorted, and not empty.
    sorted: Vec<Duration>,
}

impl Quantiles {
    /// # Errors
    /// If there are no times.
    pub(super) fn new(mut times: Vec<Duration>) -> Result<Self> {
        ensure!(
            !times.is_empty(),
            "expected measured times, but there are none"
        );
        times.sort_unstable();
        Ok(Self { sorted: times })
    }

    /// The smallest measured time that at least this many percent of the times do not exceed. It is never
    /// interpolated.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.sorted.len() * percent).div_ceil(100);
        self.sorted[rank.clamp(1, self.sorted.len()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantiles(ms: impl IntoIterator<Item = u64>) -> Quantiles {
        Quantiles::new(ms.into_iter().map(Duration::from_millis).collect()).unwrap()
    }

    #[test]
    fn a_percentile_is_the_time_at_its_rank() {
        let twenty = quantiles((1..=20).rev());
        let percentile = |percent| twenty.percentile(percent).as_millis();
        assert_eq!(percentile(0), 1);
        assert_eq!(percentile(50), 10);
        assert_eq!(percentile(90), 18);
        assert_eq!(percentile(91), 19);
        assert_eq!(percentile(100), 20);
    }

    #[test]
    fn one_time_is_every_percentile() {
        let one = quantiles([7]);
        assert_eq!(one.percentile(50), one.percentile(100));
    }

    #[test]
    fn no_times_have_no_quantiles() {
        assert!(Quantiles::new(Vec::new()).is_err());
    }
}
