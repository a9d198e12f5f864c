//! Histograms of durations.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in microseconds: from a flush to a good disk up to background
/// work. The last bucket has no bound.
pub(super) const BOUNDS_MICROS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];
const BUCKETS: usize = BOUNDS_MICROS.len() + 1;

/// Durations, counted in buckets. Recording one takes two additions and no lock.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// A histogram's content at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// By bucket: how many durations were at most its bound.
    pub(super) cumulative: [u64; BUCKETS],
    /// The sum of all durations, in microseconds.
    pub(super) sum_micros: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: array::from_fn(|_| AtomicU64::new(0)),
            sum_micros: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Records a duration.
    pub(super) fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Reads the content. A duration that is recorded meanwhile may be in the sum and not yet in a
    /// bucket.
    pub(super) fn read(&self) -> Reading {
        let mut count = 0;
        let cumulative = array::from_fn(|bucket| {
            count += self.buckets[bucket].load(Ordering::Relaxed);
            count
        });
        let sum_micros = self.sum_micros.load(Ordering::Relaxed);
        Reading {
            cumulative,
            sum_micros,
        }
    }
}

impl Reading {
    /// The number of durations.
    pub(super) fn count(&self) -> u64 {
        self.cumulative[BUCKETS - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_holds_it_and_in_all_after_it() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 10_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let reading = histogram.read();
        assert_eq!(reading.cumulative[..3], [2, 3, 3]);
        assert_eq!(reading.cumulative[BUCKETS - 2..], [3, 4]);
        assert_eq!((reading.count(), reading.sum_micros), (4, 10_000_202));
    }
}
