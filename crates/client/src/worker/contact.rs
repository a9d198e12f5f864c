//! Whether a worker reaches the cluster; each change is logged once.

use crate::error::ClientError;

/// Whether a worker reaches the cluster.
#[derive(Debug)]
pub(crate) struct Contact {
    worker_id: String,
    is_lost: bool,
}

impl Contact {
    /// A worker that has not lost the connection yet.
    pub(crate) fn new(worker_id: String) -> Self {
        Self {
            worker_id,
            is_lost: false,
        }
    }

    /// A call failed temporarily, or a stream broke.
    pub(crate) fn lose(&mut self, error: &ClientError) {
        let worker = &self.worker_id;
        if self.is_lost {
            tracing::info!(worker, %error, "reconnecting");
        } else {
            self.is_lost = true;
            tracing::warn!(worker, %error, "the connection to the cluster is lost: reconnecting");
        }
    }

    /// The cluster has responded.
    pub(crate) fn regain(&mut self) {
        if std::mem::take(&mut self.is_lost) {
            tracing::warn!(worker = self.worker_id, "the cluster is back");
        }
    }
}
