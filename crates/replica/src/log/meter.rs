//! Measures how many bytes of log follow an index: the trigger of snapshots and the limit for
//! lagging members.

use std::collections::VecDeque;

/// The interval of the samples, and so the precision of the results.
const SAMPLE_BYTES: u64 = 64 << 10;

/// A running total of the log's bytes, sampled by index.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Index and the total up to it, ascending.
    samples: VecDeque<(u64, u64)>,
    total: u64,
}

impl Meter {
    /// Counts an appended record.
    pub(crate) fn append(&mut self, index: u64, bytes: usize) {
        self.total += bytes as u64;
        let last = self.samples.back().map_or(0, |(_, total)| *total);
        if self.samples.is_empty() || self.total - last >= SAMPLE_BYTES {
            self.samples.push_back((index, self.total));
        }
    }

    /// Forgets the records from `from` on.
    pub(crate) fn truncate(&mut self, from: u64) {
        while self.samples.back().is_some_and(|(index, _)| *index >= from) {
            self.samples.pop_back();
        }
        if let Some((_, total)) = self.samples.back() {
            self.total = *total;
        }
    }

    /// Forgets the records up to `to`.
    pub(crate) fn purge(&mut self, to: u64) {
        while self.samples.len() > 1 && self.samples[1].0 <= to {
            self.samples.pop_front();
        }
    }

    /// The approximate size of the records after `index`.
    pub(crate) fn bytes_after(&self, index: u64) -> u64 {
        let position = self
            .samples
            .partition_point(|(sampled, _)| *sampled <= index);
        let before = position.checked_sub(1).map_or_else(
            || self.samples.front().map_or(self.total, |(_, total)| *total),
            |position| self.samples[position].1,
        );
        self.total - before
    }

    /// The approximate size of all records.
    pub(crate) fn bytes(&self) -> u64 {
        self.total - self.samples.front().map_or(0, |(_, total)| *total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_after_an_index_are_known_to_a_sample() {
        let mut meter = Meter::default();
        for index in 0..100 {
            meter.append(index, 10_000);
        }
        let after = meter.bytes_after(49);
        assert!(after.abs_diff(500_000) <= SAMPLE_BYTES + 10_000, "{after}");
        meter.purge(89);
        assert!(
            meter.bytes().abs_diff(100_000) <= SAMPLE_BYTES + 10_000,
            "{}",
            meter.bytes()
        );
        meter.truncate(95);
        assert!(meter.bytes_after(94) <= SAMPLE_BYTES);
        assert_eq!(meter.bytes_after(200), 0);
    }
}
