//! What the owner of a worker wants to be told.

use std::fmt;

/// What the owner of a worker wants to be told, each at most once.
#[derive(Default)]
pub(super) struct Hooks {
    /// The leader has accepted the worker.
    pub(super) on_ready: Option<Box<dyn FnOnce() + Send>>,
    /// The worker takes no more tasks; how many it has in hand.
    pub(super) on_drain: Option<Box<dyn FnOnce(usize) + Send>>,
}

impl Hooks {
    /// Tells that tasks may come.
    pub(super) fn ready(&mut self) {
        if let Some(on_ready) = self.on_ready.take() {
            on_ready();
        }
    }

    /// Tells that the worker drains, and how many tasks it waits for.
    pub(super) fn draining(&mut self, tasks: usize) {
        if let Some(on_drain) = self.on_drain.take() {
            on_drain(tasks);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hooks").finish_non_exhaustive()
    }
}
