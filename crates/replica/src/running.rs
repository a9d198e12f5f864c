//! A replica's parts together with what runs them, and how they end.

use crate::core::Core;
use crate::execution::Chores;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Work that is under way, such as a capture, may take so long to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A running replica.
pub(crate) struct Running {
    /// Invariant: present until drop.
    core: Option<Arc<Core>>,
    /// The replica's own; unset where it runs on its caller's.
    runtime: Option<Runtime>,
    chores: Chores,
}

impl Running {
    pub(crate) fn new(core: Arc<Core>, runtime: Option<Runtime>, chores: Chores) -> Self {
        Self {
            core: Some(core),
            runtime,
            chores,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        self.core.as_ref().expect("the core is there until drop")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else {
            return;
        };
        core.shutdown.cancel();
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let chores = self.chores.clone();
        // On a thread of its own: this may be a thread of the caller's runtime, and a runtime must
        // not wait for the end of another one.
        let closing = std::thread::spawn(move || {
            drop(core);
            close(runtime, &chores);
        });
        if closing.join().is_err() {
            tracing::error!("the replica did not close in order");
        }
    }
}

/// Ends all tasks, and then the threads that wait for them. Blocks.
pub(crate) fn close(runtime: Runtime, chores: &Chores) {
    runtime.shutdown_timeout(CLOSE_TIMEOUT);
    chores.join();
}
