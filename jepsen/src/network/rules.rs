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
}

impl Rules {
    /// Whether nothing goes from one node to another.
    pub(crate) fn is_cut(&self, from: u64, to: u64) -> bool {
        self.cut.contains(&(from, to))
    }
}
