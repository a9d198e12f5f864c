//! What is due and cannot be served by this node for now.
//!
//! It stays due in the state, for a leader that knows better, and must hold up nothing else here.

use crate::limits::ASIDE_DELAY;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Obligations that are left alone for a while.
#[derive(Debug)]
pub(super) struct Aside<K> {
    /// When each is looked at again.
    again: BTreeMap<K, Instant>,
}

impl<K> Default for Aside<K> {
    fn default() -> Self {
        Self {
            again: BTreeMap::new(),
        }
    }
}

impl<K: Ord> Aside<K> {
    /// Leaves it alone from now on, for [`ASIDE_DELAY`].
    pub(super) fn add(&mut self, key: K) {
        let _ = self.again.insert(key, Instant::now() + ASIDE_DELAY);
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.again.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.again.len()
    }

    /// Those whose time is over are looked at again.
    pub(super) fn forget_until(&mut self, now: Instant) {
        self.again.retain(|_, again| *again > now);
    }

    /// When the next of them is to be looked at again.
    pub(super) fn next_try(&self) -> Option<Instant> {
        self.again.values().min().copied()
    }
}
