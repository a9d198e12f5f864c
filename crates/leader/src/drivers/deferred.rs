//! Due work that this node cannot do for now.
//!
//! It stays due in the state, for a leader that can do it, and must not block other work here.

use crate::limits::DEFER_DELAY;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Obligations that are skipped for a while.
#[derive(Debug)]
pub(super) struct Deferred<K> {
    /// When each is tried again.
    again: BTreeMap<K, Instant>,
}

impl<K> Default for Deferred<K> {
    fn default() -> Self {
        Self {
            again: BTreeMap::new(),
        }
    }
}

impl<K: Ord> Deferred<K> {
    /// Skips an obligation from now on, for [`DEFER_DELAY`].
    pub(super) fn add(&mut self, key: K) {
        let _ = self.again.insert(key, Instant::now() + DEFER_DELAY);
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.again.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.again.len()
    }

    /// Forgets the obligations whose delay has passed, so that they are tried again.
    pub(super) fn forget_until(&mut self, now: Instant) {
        self.again.retain(|_, again| *again > now);
    }

    /// When the next obligation is tried again.
    pub(super) fn next_try(&self) -> Option<Instant> {
        self.again.values().min().copied()
    }
}
