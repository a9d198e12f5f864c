//! The common parts of all drivers.
//!
//! The drivers stand in for the server's, which cannot be used without gRPC: they read the same views of
//! the state, propose the same commands, and have no other knowledge.

use super::hub::Hub;
use crate::record::Record;
use flotilla_engine::store::StoreError;
use flotilla_engine::{Body, Command, Reply, ids::Namespace};
use flotilla_replica::{Replica, View};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a driver retries a command.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long a driver defers what was refused.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The common parts of all drivers.
#[derive(Clone)]
pub(super) struct Driver {
    pub(super) replica: Replica,
    pub(super) hub: Arc<Hub>,
    /// Notifies that a new due time was set.
    pub(super) armed: Arc<Notify>,
    pub(super) record: Record,
}

impl Driver {
    /// Submits the command of one obligation; `None` if it was not accepted.
    pub(super) async fn submit(&self, body: Body) -> Option<Reply> {
        let command = Command::new(Namespace::default_namespace(), body);
        let who = format!("driver {}", self.replica.node_id().0);
        self.record.say(&who, &format!("asks {command:?}"));
        let deadline = Instant::now() + TIMEOUT;
        let submitted = self.replica.submit(command, deadline).await;
        self.record.say(&who, &format!("hears {submitted:?}"));
        submitted.ok()?.ok()
    }

    /// Reads the applied state of this node; `None` if it cannot be read.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&View<'_>) -> Result<T, StoreError>,
    ) -> Option<T> {
        self.replica.view(read).ok()?.ok()
    }

    /// Waits until the time, or until a new due time is set.
    pub(super) async fn sleep_until(&self, due_ms: Option<u64>) {
        let wait_ms = due_ms.map_or(1_000, |due_ms| {
            due_ms.saturating_sub(self.replica.now_ms()).clamp(1, 1_000)
        });
        let armed = self.armed.notified();
        // In either case the next read finds out what is due.
        drop(tokio::time::timeout(Duration::from_millis(wait_ms), armed).await);
    }
}
