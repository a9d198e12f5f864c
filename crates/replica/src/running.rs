//! A replica's parts together with what runs them, and how they end.

use crate::core::Core;
use crate::execution::Chores;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Consensus needs little, but must not wait for others: its threads serve nothing else.
const WORKER_THREADS: usize = 2;
/// Work that is under way, such as a capture, may take so long to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A running replica.
pub(crate) struct Running {
    /// Invariant: present until drop. Goes before the runtime, whose threads wait until it is gone.
    core: Option<Arc<Core>>,
    /// The replica's own; unset where it runs on its caller's.
    _runtime: Option<OwnRuntime>,
}

impl Running {
    pub(crate) fn new(core: Arc<Core>, runtime: Option<OwnRuntime>) -> Self {
        Self {
            core: Some(core),
            _runtime: runtime,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        self.core.as_ref().expect("the core is there until drop")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            core.shutdown.cancel();
        }
    }
}

/// A replica's own runtime, and its threads beside it. All of them have ended when it is gone, whatever it
/// was doing: also when a start is given up.
pub(crate) struct OwnRuntime {
    /// Invariant: present until drop.
    runtime: Option<Runtime>,
    chores: Chores,
}

impl OwnRuntime {
    /// A runtime whose threads have this name.
    ///
    /// # Errors
    /// [`io::Error`] when the system has no threads to give.
    pub(crate) fn start(name: String, chores: Chores) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .thread_name(name)
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            chores,
        })
    }

    /// Where its tasks are spawned.
    pub(crate) fn handle(&self) -> &Handle {
        let runtime = self.runtime.as_ref();
        runtime.expect("the runtime is there until drop").handle()
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let chores = self.chores.clone();
        // On a thread of its own: this may be a thread of the caller's runtime, and a runtime must
        // not wait for the end of another one.
        let closing = std::thread::spawn(move || {
            runtime.shutdown_timeout(CLOSE_TIMEOUT);
            chores.join();
        });
        if closing.join().is_err() {
            tracing::error!("the replica did not close in order");
        }
    }
}
