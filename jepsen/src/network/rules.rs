//! What proxies do to messages.

use std::collections::BTreeSet;
use std::time::Duration;

/// What proxies do to messages; nothing by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Pairs of sender and receiver between which nothing goes.
    pub(crate) cut: BTreeSet<(u64, u64)>,
    /// How late messages are, give or take a half.
    pub(crate) delay: Duration,
    /// At how many of a thousand messages the connection breaks.
    pub(crate) resets_per_mille: u32,
    /// How often all connections were broken: one that is older than the last time breaks.
    pub(crate) breaks_count: u64,
}

impl Rules {
    /// Messages go through again.
    pub(crate) fn mend(&mut self) {
        *self = Self {
            breaks_count: self.breaks_count,
            ..Self::default()
        };
    }

    /// Whether nothing goes from one node to another.
    pub(crate) fn is_cut(&self, from: u64, to: u64) -> bool {
        self.cut.contains(&(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mended_goes_through_and_breaks_no_connection() {
        let mut rules = Rules {
            cut: BTreeSet::from([(1, 2)]),
            delay: Duration::from_millis(5),
            resets_per_mille: 10,
            breaks_count: 1,
        };
        rules.mend();
        assert!(!rules.is_cut(1, 2));
        assert_eq!((rules.delay, rules.resets_per_mille), (Duration::ZERO, 0));
        assert_eq!(rules.breaks_count, 1);
    }
}
