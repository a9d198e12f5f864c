//! Waiting for something to be applied on this node.
//!
//! A watcher is only woken; what happened it reads from the state. So it does not matter that
//! effects may come twice or get lost: a `Notice::Lost` wakes everybody.

use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::WATCHERS_MAX;
use flotilla_engine::Effect;
use flotilla_engine::ids::{ActionRunNumber, GroupName, Namespace, RunId, StreamName};
use flotilla_replica::{Notice, Subscription};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Who waits for something to be applied on this node.
#[derive(Default)]
pub(crate) struct Watchers {
    /// For a run's history or status to change.
    pub(crate) runs: Bells<(Namespace, RunId)>,
    /// For a run to end.
    pub(crate) ended_runs: Bells<(Namespace, RunId)>,
    /// For a stand-alone action run to end.
    pub(crate) action_runs: Bells<ActionRunNumber>,
    /// For a stream to grow, begin or end.
    pub(crate) streams: Bells<(Namespace, StreamName)>,
    /// For records to become ready that a group could not give before.
    pub(crate) groups: Bells<(Namespace, StreamName, GroupName)>,
}

/// One bell for each thing that somebody waits for.
pub(crate) struct Bells<K: Ord + Clone> {
    // A std mutex: it is never held across an await.
    tower: Arc<Mutex<Tower<K>>>,
}

struct Tower<K> {
    bells: BTreeMap<K, Bell>,
    /// All watches of all bells.
    watches_count: usize,
}

struct Bell {
    sender: watch::Sender<()>,
    watches_count: usize,
}

/// Waits for one bell. A ring that comes between two waits is not missed.
pub(crate) struct Watch<K: Ord + Clone> {
    key: K,
    bells: Bells<K>,
    receiver: watch::Receiver<()>,
}

/// Wakes watchers for what is applied from the subscription on. Ends with `context.shutdown`.
pub(crate) fn start(context: Arc<Context>, mut subscription: Subscription) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let notice = tokio::select! {
                notice = subscription.next() => notice,
                () = context.shutdown.cancelled() => None,
            };
            match notice {
                Some(Notice::Applied(batch)) => context.watchers.wake(&batch.effects),
                Some(Notice::Lost) => context.watchers.wake_all(),
                None => return,
            }
        }
    })
}

impl Watchers {
    fn wake(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::RunChanged {
                    namespace,
                    run_id,
                    is_open,
                } => {
                    let key = (namespace.clone(), run_id.clone());
                    self.runs.ring(&key);
                    if !is_open {
                        self.ended_runs.ring(&key);
                    }
                }
                Effect::ActionRunEnded { action_run } => self.action_runs.ring(action_run),
                Effect::StreamChanged { namespace, stream } => {
                    self.streams.ring(&(namespace.clone(), stream.clone()));
                }
                Effect::RecordsReady {
                    namespace,
                    stream,
                    group,
                } => {
                    let key = (namespace.clone(), stream.clone(), group.clone());
                    self.groups.ring(&key);
                }
                Effect::WakeWorkers { .. }
                | Effect::DeliverTask { .. }
                | Effect::RevokeTask { .. }
                | Effect::DrainWorker { .. }
                | Effect::ArmTimer { .. }
                | Effect::ArmSchedule { .. }
                | Effect::ArmTrigger { .. }
                | Effect::ArmRetention { .. }
                | Effect::CheckChildInput { .. }
                | Effect::RecordsLost { .. }
                | Effect::ModulesChanged => {}
            }
        }
    }

    fn wake_all(&self) {
        self.runs.ring_all();
        self.ended_runs.ring_all();
        self.action_runs.ring_all();
        self.streams.ring_all();
        self.groups.ring_all();
    }
}

impl<K: Ord + Clone> Bells<K> {
    /// Begins to listen: whatever is applied from now on is heard.
    pub(crate) fn watch(&self, key: K) -> Result<Watch<K>, Refusal> {
        let mut tower = self.lock();
        if tower.watches_count >= WATCHERS_MAX {
            let message = format!("expected at most {WATCHERS_MAX} callers to wait, but more do");
            return Err(Refusal::overloaded(message));
        }
        tower.watches_count += 1;
        let bell = tower.bells.entry(key.clone()).or_default();
        bell.watches_count += 1;
        Ok(Watch {
            key,
            bells: self.clone(),
            receiver: bell.sender.subscribe(),
        })
    }

    fn ring(&self, key: &K) {
        if let Some(bell) = self.lock().bells.get(key) {
            bell.sender.send_replace(());
        }
    }

    fn ring_all(&self) {
        for bell in self.lock().bells.values() {
            bell.sender.send_replace(());
        }
    }

    fn forget(&self, key: &K) {
        let mut tower = self.lock();
        tower.watches_count -= 1;
        if let Some(bell) = tower.bells.get_mut(key) {
            bell.watches_count -= 1;
            if bell.watches_count == 0 {
                tower.bells.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tower<K>> {
        // Nothing that is done under the lock panics half-way.
        self.tower.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Clone for Bells<K> {
    fn clone(&self) -> Self {
        Self {
            tower: self.tower.clone(),
        }
    }
}

impl<K: Ord + Clone> Default for Bells<K> {
    fn default() -> Self {
        let tower = Tower {
            bells: BTreeMap::new(),
            watches_count: 0,
        };
        Self {
            tower: Arc::new(Mutex::new(tower)),
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            sender: watch::Sender::new(()),
            watches_count: 0,
        }
    }
}

impl<K: Ord + Clone> Watch<K> {
    /// Waits until the bell has rung since the last call, or since the watch began.
    pub(crate) async fn rung(&mut self) {
        // The bell is kept as long as this watch listens to it, so this cannot fail.
        drop(self.receiver.changed().await);
    }
}

impl<K: Ord + Clone> Drop for Watch<K> {
    fn drop(&mut self) {
        self.bells.forget(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_ring_before_the_wait_is_heard_once() {
        let bells = Bells::<u8>::default();
        let mut watch = bells.watch(1).unwrap();
        bells.ring(&1);
        bells.ring(&2);
        watch.rung().await;
        assert_eq!(watch.rung().now_or_never(), None);
        bells.ring_all();
        watch.rung().await;
    }

    #[test]
    fn a_bell_goes_with_its_last_watch() {
        let bells = Bells::<u8>::default();
        let watches = [bells.watch(1).unwrap(), bells.watch(1).unwrap()];
        let [first, second] = watches;
        drop(first);
        assert_eq!(bells.lock().bells.len(), 1);
        drop(second);
        assert_eq!(bells.lock().bells.len(), 0);
    }

    #[test]
    fn more_watchers_than_the_bound_are_turned_away() {
        let bells = Bells::<usize>::default();
        let watches: Vec<_> = (0..WATCHERS_MAX)
            .map(|key| bells.watch(key).unwrap())
            .collect();
        assert!(
            bells
                .watch(WATCHERS_MAX)
                .err()
                .is_some_and(|refusal| refusal.may_succeed_later())
        );
        assert!(bells.watch(0).is_err());
        drop(watches);
        assert!(bells.watch(WATCHERS_MAX).is_ok());
    }
}
