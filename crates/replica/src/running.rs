//! A running replica: its parts, its runtime, and how they end.

use crate::core::Core;
use crate::execution::BlockingPool;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Consensus needs little CPU, but must not wait for others: its threads serve nothing else.
const WORKER_THREADS: usize = 2;
/// How long running work, such as a capture, may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A running replica.
pub(crate) struct Running {
    /// Invariant: present until drop. Dropped before the runtime, whose threads wait for that.
    core: Option<Arc<Core>>,
    /// The replica's own runtime; unset if it runs on its caller's.
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
            core.lifecycle.end();
        }
    }
}

/// A replica's own runtime, and its threads beside it. Dropping it waits until all of them have
/// ended, also when a start is cancelled; but not for ever, since a disk may hang.
pub(crate) struct OwnRuntime {
    /// Invariant: present until drop.
    runtime: Option<Runtime>,
    blocking_pool: BlockingPool,
}

impl OwnRuntime {
    /// A runtime whose threads have this name.
    ///
    /// # Errors
    /// [`io::Error`] if the system cannot create threads.
    pub(crate) fn start(name: String, blocking_pool: BlockingPool) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .thread_name(name)
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            blocking_pool,
        })
    }

    /// The handle that spawns its tasks.
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
        let blocking_pool = self.blocking_pool.clone();
        // On a separate thread: this may be a thread of the caller's runtime, and a runtime must
        // not wait for the end of another one.
        let closing = std::thread::spawn(move || {
            runtime.shutdown_timeout(CLOSE_TIMEOUT);
            blocking_pool.join(CLOSE_TIMEOUT);
        });
        if closing.join().is_err() {
            tracing::error!("the replica did not close cleanly");
        }
    }
}
