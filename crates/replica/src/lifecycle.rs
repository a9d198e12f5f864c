//! Whether a replica serves, and why it ends.

use crate::fatal::FatalError;
use crate::start_error::StartError;
use crate::state::rows::Divergence;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Whether a replica serves, and why it ends. Clones share it.
#[derive(Clone)]
pub(crate) struct Lifecycle {
    node_id: u64,
    shutdown: CancellationToken,
    fatal: watch::Sender<Option<Arc<FatalError>>>,
    divergence: watch::Sender<Option<Divergence>>,
}

/// Why a replica does not serve.
pub(crate) enum NotServing {
    /// It has ended.
    Shutdown,
    /// Its state differs from the majority's.
    Diverged,
}

impl Lifecycle {
    /// The lifecycle of a replica that starts, and whose state reports its divergence here.
    pub(crate) fn new(node_id: u64, divergence: watch::Sender<Option<Divergence>>) -> Self {
        Self {
            node_id,
            shutdown: CancellationToken::new(),
            fatal: watch::Sender::new(None),
            divergence,
        }
    }

    /// Checks whether this replica serves at all.
    pub(crate) fn check_serving(&self) -> Result<(), NotServing> {
        if self.has_ended() {
            return Err(NotServing::Shutdown);
        }
        if self.is_diverged() {
            return Err(NotServing::Diverged);
        }
        Ok(())
    }

    /// Whether this replica has diverged.
    pub(crate) fn is_diverged(&self) -> bool {
        self.divergence.borrow().is_some()
    }

    /// Makes the process end; the first reason is kept.
    pub(crate) fn fail(&self, error: FatalError) {
        let node_id = self.node_id;
        if matches!(error, FatalError::Refused(StartError::Removed(_))) {
            tracing::info!(node_id, %error, "the replica ends because it was removed");
        } else {
            tracing::error!(node_id, %error, "the replica cannot continue");
        }
        self.fatal.send_if_modified(|fatal| {
            let is_first = fatal.is_none();
            if is_first {
                *fatal = Some(Arc::new(error));
            }
            is_first
        });
    }

    /// Why the process must end, once it must.
    pub(crate) fn fatal(&self) -> watch::Receiver<Option<Arc<FatalError>>> {
        self.fatal.subscribe()
    }

    /// Whether the process must end.
    pub(crate) fn has_failed(&self) -> bool {
        self.fatal.borrow().is_some()
    }

    /// Whether this replica ends because its disk hangs.
    pub(crate) fn is_hung(&self) -> bool {
        let fatal = self.fatal.borrow();
        matches!(fatal.as_deref(), Some(FatalError::LogHangs(_)))
    }

    /// Ends the tasks of this replica, and the service of its peers.
    pub(crate) fn end(&self) {
        self.shutdown.cancel();
    }

    /// Whether [`Lifecycle::end`] was called.
    pub(crate) fn has_ended(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Returns once [`Lifecycle::end`] is called.
    pub(crate) fn ended(&self) -> WaitForCancellationFutureOwned {
        self.shutdown.clone().cancelled_owned()
    }

    /// The token that is cancelled by [`Lifecycle::end`].
    pub(crate) fn token(&self) -> CancellationToken {
        self.shutdown.clone()
    }
}
