//! What the owner of a worker wants to be told.

use std::fmt;

/// What the owner of a worker wants to be told, each at most once.
#[derive(Default)]
pub(crate) struct Hooks {
    /// Work may come.
    pub(crate) on_ready: Option<Box<dyn FnOnce() + Send>>,
    /// The worker takes no more work; how many tasks or records it has in hand.
    pub(crate) on_drain: Option<Box<dyn FnOnce(usize) + Send>>,
}

impl Hooks {
    /// Tells that work may come.
    pub(crate) fn ready(&mut self) {
        if let Some(on_ready) = self.on_ready.take() {
            on_ready();
        }
    }

    /// Tells that the worker drains, and how many tasks or records it waits for.
    pub(crate) fn draining(&mut self, in_hand: usize) {
        if let Some(on_drain) = self.on_drain.take() {
            on_drain(in_hand);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hooks").finish_non_exhaustive()
    }
}
