//! The workers of a node, one for each namespace that has WASM actions.

use super::{Actionset, Shared, worker};
use flotilla_engine::ids::Namespace;
use std::collections::BTreeMap;
use std::future::pending;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

/// The workers of a node. One whose namespace has no WASM action left ends by itself, when its tasks
/// are done.
pub(super) struct Workforce {
    shared: Shared,
    workers: BTreeMap<Namespace, Member>,
    running: JoinSet<()>,
}

struct Member {
    actions: watch::Sender<Actionset>,
    id: Id,
}

impl Workforce {
    /// Nobody.
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            workers: BTreeMap::new(),
            running: JoinSet::new(),
        }
    }

    /// Tells the workers which actions there are, and starts those that are missing.
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

    /// Waits until a worker has ended. It may not have seen what it was told last, so
    /// [`Self::adjust`] is to follow. Loses nothing when it is dropped before it is ready.
    pub(super) async fn one_has_left(&mut self) {
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

    /// Waits for all of them; the node stops.
    pub(super) async fn end(mut self) {
        self.workers.clear();
        while self.running.join_next().await.is_some() {}
    }
}
