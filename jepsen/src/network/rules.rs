//! The faults that proxies inject.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::time::Duration;

/// The faults that proxies inject; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Pairs of sender and receiver without a connection.
    pub(crate) cut: BTreeSet<(u64, u64)>,
    /// The delay of messages, plus or minus a half.
    pub(crate) delay: Duration,
    /// At how many of 1000 messages the connection breaks.
    pub(crate) resets_per_mille: u32,
    /// How often all connections were broken: a connection older than the last time breaks.
    pub(crate) breaks_count: u64,
    /// The other addresses to which new connections to a node are redirected.
    pub(crate) redirected: BTreeMap<u64, SocketAddrV4>,
}

impl Rules {
    /// Removes all faults.
    pub(crate) fn mend(&mut self) {
        *self = Self {
            breaks_count: self.breaks_count,
            ..Self::default()
        };
    }

    /// Whether messages from one node to another are blocked.
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
            redirected: BTreeMap::from([(1, SocketAddrV4::new([127, 0, 0, 1].into(), 9))]),
        };
        rules.mend();
        assert!(!rules.is_cut(1, 2));
        assert_eq!((rules.delay, rules.resets_per_mille), (Duration::ZERO, 0));
        assert_eq!(rules.breaks_count, 1);
        assert!(rules.redirected.is_empty());
    }
}
