//! The callbacks of a worker's owner.

use std::fmt;

/// The callbacks of a worker's owner, each called at most once.
#[derive(Default)]
pub(crate) struct Callbacks {
    /// Tasks or records may arrive.
    pub(crate) on_ready: Option<Box<dyn FnOnce() + Send>>,
    /// The worker drains; the argument is the number of tasks or records that it holds.
    pub(crate) on_drain: Option<Box<dyn FnOnce(usize) + Send>>,
}

impl Callbacks {
    /// Reports that tasks or records may arrive.
    pub(crate) fn ready(&mut self) {
        if let Some(on_ready) = self.on_ready.take() {
            on_ready();
        }
    }

    /// Reports that the worker drains and how many tasks or records it waits for.
    pub(crate) fn draining(&mut self, in_flight: usize) {
        if let Some(on_drain) = self.on_drain.take() {
            on_drain(in_flight);
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Callbacks").finish_non_exhaustive()
    }
}
