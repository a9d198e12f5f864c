//! Staggers limits across nodes.
//!
//! All nodes apply the same entries. With the same limits, all of them would write their state to
//! disk at the same time, and none would respond quickly.

use std::time::Duration;

/// The lowest share of its limits that a node uses.
const PERCENT_MIN: u32 = 60;
/// 2^64 divided by the golden ratio: the multiples of consecutive numbers are far apart.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The share of its limits at which a node writes its state to disk. Nodes with consecutive ids
/// have different shares, so that they rarely do so at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    percent: u32,
}

impl Share {
    /// The share of the node with this id.
    pub(crate) fn of(node_id: u64) -> Self {
        let position = node_id.wrapping_mul(GOLDEN_RATIO) >> 32;
        let spread = (position * u64::from(100 - PERCENT_MIN)) >> 32;
        let spread = u32::try_from(spread).expect("a part of a hundred");
        Self {
            percent: PERCENT_MIN + spread,
        }
    }

    /// From [`PERCENT_MIN`] to 100.
    pub(crate) fn percent(self) -> u32 {
        self.percent
    }

    /// The share of a number of bytes.
    pub(crate) fn of_bytes(self, limit: u64) -> u64 {
        let part = u128::from(limit) * u128::from(self.percent) / 100;
        u64::try_from(part).expect("no more than the whole")
    }

    /// The share of a time.
    pub(crate) fn of_time(self, limit: Duration) -> Duration {
        limit / 100 * self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_whose_ids_follow_each_other_have_limits_that_are_apart() {
        for first in [1, 2, 100, u64::MAX - 5] {
            let mut percents: Vec<u32> = (first..first + 5)
                .map(|id| Share::of(id).percent())
                .collect();
            percents.sort_unstable();
            assert!((PERCENT_MIN..=100).contains(&percents[0]) && percents[4] <= 100);
            let are_apart = |pair: &[u32]| pair[1] - pair[0] >= 4;
            assert!(percents.windows(2).all(are_apart), "{percents:?}");
        }
    }

    #[test]
    fn a_part_is_never_more_than_the_whole() {
        let share = Share::of(3);
        assert_eq!(share.percent(), 94);
        let parts = [0, 1, 100].map(|limit| share.of_bytes(limit));
        assert_eq!(parts, [0, 0, 94]);
        assert_eq!(share.of_bytes(u64::MAX), u64::MAX / 100 * 94 + 14);
        let time = share.of_time(Duration::from_secs(10));
        assert_eq!(time, Duration::from_millis(9_400));
    }
}
