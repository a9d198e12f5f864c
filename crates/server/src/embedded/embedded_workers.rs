//! A node's embedded workers, one for each namespace that has WASM actions.

use super::{Actionset, Shared, worker};
use flotilla_engine::ids::Namespace;
use std::collections::BTreeMap;
use std::future::pending;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

/// A node's embedded workers. A worker whose namespace has no WASM action left ends by itself once
/// its tasks are done.
pub(super) struct EmbeddedWorkers {
    shared: Shared,
    workers: BTreeMap<Namespace, Member>,
    running: JoinSet<()>,
}

struct Member {
    actions: watch::Sender<Actionset>,
    id: Id,
}

impl EmbeddedWorkers {
    /// Starts with no workers.
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            workers: BTreeMap::new(),
            running: JoinSet::new(),
        }
    }

    /// Passes the current actions to the workers and starts those that are missing.
    pub(super) fn adjust(&mut self, mut wanted: BTreeMap<Namespace, Actionset>) {
        for (namespace, worker) in &self.workers {
            let actions = wanted.remove(namespace).unwrap_or_default();
            worker.actions.send_if_modified(|known| {
                let is_changed = *known != actions;
                *known = actions;
                is_changed
            });
        }
        for (namespace, actions) in wanted {
            let (sender, receiver) = watch::channel(actions);
            let work = worker::run(self.shared.clone(), namespace.clone(), receiver);
            let id = self.running.spawn(work).id();
            let actions = sender;
            self.workers.insert(namespace, Member { actions, id });
        }
    }

    /// Waits until a worker has ended. It may have missed the latest actions, so call
    /// [`Self::adjust`] next. Cancel-safe.
    pub(super) async fn member_ended(&mut self) {
        let Some(ended) = self.running.join_next_with_id().await else {
            return pending().await;
        };
        let ended = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "an embedded worker failed");
                error.id()
            }
        };
        self.workers.retain(|_, worker| worker.id != ended);
    }

    /// Waits for all workers to end, when the node stops.
    pub(super) async fn end(mut self) {
        self.workers.clear();
        while self.running.join_next().await.is_some() {}
    }
}
