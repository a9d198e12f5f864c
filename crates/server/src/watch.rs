//! Waiting until something is applied on this node.
//!
//! A watcher is only woken; it reads what happened from the state. So effects may be duplicated or
//! lost: a `Notice::Lost` wakes all watchers. The watchers of one run share what they read.

mod run_look;
mod shared_look;

pub(crate) use run_look::{LookRange, RunLook};
pub(crate) use shared_look::SharedLook;

use crate::access::{CallContext, credential_ended};
use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::WATCHERS_MAX;
use crate::namespace_permits::{NamespacePermit, NamespacePermits};
use flotilla_engine::Effect;
use flotilla_engine::ids::{ActionRunNumber, GroupName, Namespace, RunId, StreamName};
use flotilla_engine::view::RunEnding;
use flotilla_replica::{Notice, Subscription};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A run, as callers name it.
type RunKey = (Namespace, RunId);
/// Waits for changes of a run.
pub(crate) type RunChanges = Watch<RunKey, SharedLook<LookRange, RunLook>>;

/// The callers that wait until something is applied on this node.
#[derive(Default)]
pub(crate) struct Watchers {
    /// Woken when a run's history or status changes.
    pub(crate) runs: KeyedNotify<RunKey, SharedLook<LookRange, RunLook>>,
    /// Woken when a run ends.
    pub(crate) ended_runs: KeyedNotify<RunKey, SharedLook<RunId, Option<RunEnding>>>,
    /// Woken when a stand-alone action run ends.
    pub(crate) action_runs: KeyedNotify<ActionRunNumber>,
    /// Woken when a stream grows, is created or is deleted.
    pub(crate) streams: KeyedNotify<(Namespace, StreamName)>,
    /// Woken when a group has new records to deliver.
    pub(crate) groups: KeyedNotify<(Namespace, StreamName, GroupName)>,
    /// Woken when the access mode or a token changes; counts the changes.
    pub(crate) access: watch::Sender<u64>,
}

/// Notifications per key that a caller waits for. The watches of a key share an `S`.
pub(crate) struct KeyedNotify<K: Ord + Clone, S: Default = ()> {
    // A std mutex: it is never held across an await.
    entries: Arc<Mutex<BTreeMap<K, NotifyEntry<S>>>>,
    /// One for each watch.
    permits: NamespacePermits,
}

#[derive(Default)]
struct NotifyEntry<S> {
    /// Counts the notifications.
    sender: watch::Sender<u64>,
    watches_count: usize,
    shared: Arc<S>,
}

/// Waits for one key. A notification between two waits is not missed.
pub(crate) struct Watch<K: Ord + Clone, S: Default = ()> {
    key: K,
    notify: KeyedNotify<K, S>,
    receiver: watch::Receiver<u64>,
    shared: Arc<S>,
    _permit: NamespacePermit,
}

/// Waits until the caller can no longer wait at this node, because the node is cut off or drained or the caller's credential
/// has ended, and returns the refusal for it. Unless the credential has ended, the same call at another node continues the
/// wait.
pub(crate) async fn interrupted(context: &CallContext) -> Refusal {
    let mut drained = context.node_gateway.home().replica().drained();
    let is_drained = async {
        if drained.wait_for(|is_drained| *is_drained).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        refusal = cut_off(context) => refusal,
        () = is_drained => Refusal::node_drained(),
    }
}

/// Waits until the node stops, has received no commits for longer than an election takes, or the caller's credential has ended,
/// and returns the refusal for a waiting caller.
///
/// A worker at the leader waits for this only: it leaves a drained node when that no longer leads.
pub(crate) async fn cut_off(context: &CallContext) -> Refusal {
    let mut standstill = context.node_gateway.home().replica().standstill();
    let stands_still = async {
        match standstill
            .wait_for(Option::is_some)
            .await
            .map(|found| *found)
        {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = context.shutdown.cancelled() => Refusal::shutting_down(),
        found = stands_still => found.into(),
        refusal = credential_ended(context) => refusal,
    }
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
                Some(Notice::Applied(batch)) => {
                    if batch.effects.contains(&Effect::AccessChanged) {
                        refresh_access_mode(&context);
                    }
                    context.watchers.wake(&batch.effects);
                }
                Some(Notice::Lost) => {
                    refresh_access_mode(&context);
                    context.watchers.wake_all();
                }
                None => return,
            }
        }
    })
}

/// Notes whether the cluster is open. If that fails, calls are judged by what was known before, and then by the engine.
fn refresh_access_mode(context: &Context) {
    let gateway = &context.node_gateway;
    let looked = gateway
        .home()
        .read_stored(|reader| gateway.initial_access().refresh(reader));
    if let Err(refusal) = looked {
        tracing::debug!(%refusal, "the access mode could not be read");
    }
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
                    self.runs.notify_key(&key);
                    if !is_open {
                        self.ended_runs.notify_key(&key);
                    }
                }
                Effect::ActionRunEnded { action_run } => self.action_runs.notify_key(action_run),
                Effect::StreamChanged { namespace, stream } => {
                    self.streams
                        .notify_key(&(namespace.clone(), stream.clone()));
                }
                Effect::RecordsReady {
                    namespace,
                    stream,
                    group,
                } => {
                    let key = (namespace.clone(), stream.clone(), group.clone());
                    self.groups.notify_key(&key);
                }
                Effect::AccessChanged => self.access.send_modify(|changes| *changes += 1),
                Effect::WakeWorkers { .. }
                | Effect::DeliverTask { .. }
                | Effect::RevokeTask { .. }
                | Effect::DrainWorker { .. }
                | Effect::ArmTimer { .. }
                | Effect::ArmSchedule { .. }
                | Effect::ArmTrigger { .. }
                | Effect::ArmRetention { .. }
                | Effect::CheckSchema { .. }
                | Effect::RecordsLost { .. }
                | Effect::ModulesChanged => {}
            }
        }
    }

    /// The number of callers by what they wait for and by namespace.
    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, String), usize> {
        [
            ("run", self.runs.counts()),
            ("run_end", self.ended_runs.counts()),
            ("action_run", self.action_runs.counts()),
            ("stream", self.streams.counts()),
            ("group", self.groups.counts()),
        ]
        .into_iter()
        .flat_map(|(kind, counts)| {
            let counts = counts.into_iter();
            counts.map(move |(namespace, count)| ((kind, namespace.to_string()), count))
        })
        .collect()
    }

    fn wake_all(&self) {
        self.runs.notify_all();
        self.ended_runs.notify_all();
        self.action_runs.notify_all();
        self.streams.notify_all();
        self.groups.notify_all();
        self.access.send_modify(|changes| *changes += 1);
    }
}

impl<K: Ord + Clone, S: Default> KeyedNotify<K, S> {
    /// Begins to watch for a caller of this namespace: everything that is applied from now on is noticed.
    pub(crate) fn watch(&self, namespace: &Namespace, key: K) -> Result<Watch<K, S>, Refusal> {
        let permit = self.permits.acquire(namespace).ok_or_else(|| {
            Refusal::overloaded(format!(
                "expected fewer waiting callers, but this node has {}, too many of them of namespace `{namespace}` or in all",
                self.permits.held_count()
            ))
        })?;
        let mut entries = self.lock();
        let entry = entries.entry(key.clone()).or_default();
        entry.watches_count += 1;
        Ok(Watch {
            key,
            notify: self.clone(),
            receiver: entry.sender.subscribe(),
            shared: entry.shared.clone(),
            _permit: permit,
        })
    }

    fn notify_key(&self, key: &K) {
        if let Some(entry) = self.lock().get(key) {
            entry.notify();
        }
    }

    fn notify_all(&self) {
        for entry in self.lock().values() {
            entry.notify();
        }
    }

    /// The number of watches by namespace.
    fn counts(&self) -> BTreeMap<Namespace, usize> {
        self.permits.held_by_namespace()
    }

    fn forget(&self, key: &K) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(key) {
            entry.watches_count -= 1;
            if entry.watches_count == 0 {
                entries.remove(key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, NotifyEntry<S>>> {
        // Nothing under the lock panics halfway.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone, S: Default> Clone for KeyedNotify<K, S> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            permits: self.permits.clone(),
        }
    }
}

impl<K: Ord + Clone, S: Default> Default for KeyedNotify<K, S> {
    fn default() -> Self {
        Self {
            entries: Arc::default(),
            permits: NamespacePermits::new(WATCHERS_MAX, 2 * WATCHERS_MAX),
        }
    }
}

impl<S> NotifyEntry<S> {
    fn notify(&self) {
        self.sender.send_modify(|count| *count += 1);
    }
}

impl<K: Ord + Clone, S: Default> Watch<K, S> {
    /// Waits until a notification since the last call, or since the watch began.
    pub(crate) async fn notified(&mut self) {
        // The sender lives as long as this watch, so this cannot fail.
        drop(self.receiver.changed().await);
    }

    /// The number of the last notification. What is read from now on includes it, so `notified` waits for the next one.
    pub(crate) fn last_notification(&mut self) -> u64 {
        *self.receiver.borrow_and_update()
    }

    /// The number of other watches of the key.
    pub(crate) fn others_count(&self) -> usize {
        let entries = self.notify.lock();
        let entry = entries.get(&self.key);
        entry.map_or(0, |entry| entry.watches_count.saturating_sub(1))
    }

    /// What all watches of the key share.
    pub(crate) fn shared(&self) -> &Arc<S> {
        &self.shared
    }
}

impl<K: Ord + Clone, S: Default> Drop for Watch<K, S> {
    fn drop(&mut self) {
        self.notify.forget(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn shop() -> Namespace {
        Namespace::new("shop".to_owned()).unwrap()
    }

    #[tokio::test]
    async fn a_ring_before_the_wait_is_heard_once() {
        let notify = KeyedNotify::<u8>::default();
        let mut watch = notify.watch(&shop(), 1).unwrap();
        notify.notify_key(&1);
        notify.notify_key(&2);
        watch.notified().await;
        assert_eq!(watch.notified().now_or_never(), None);
        notify.notify_all();
        watch.notified().await;
    }

    #[test]
    fn a_bell_goes_with_its_last_watch() {
        let notify = KeyedNotify::<u8>::default();
        let watches = [
            notify.watch(&shop(), 1).unwrap(),
            notify.watch(&shop(), 1).unwrap(),
        ];
        let [first, second] = watches;
        drop(first);
        assert_eq!(notify.lock().len(), 1);
        drop(second);
        assert_eq!(notify.lock().len(), 0);
    }

    #[test]
    fn a_namespace_that_uses_up_the_bound_leaves_others_their_share() {
        let notify = KeyedNotify::<usize>::default();
        let watch = |name: &str, key| {
            let namespace = Namespace::new(name.to_owned()).unwrap();
            notify.watch(&namespace, key)
        };
        let mut watches: Vec<_> = (0..WATCHERS_MAX)
            .map(|key| watch("noisy", key).unwrap())
            .collect();
        let refused = watch("noisy", WATCHERS_MAX).err().unwrap();
        assert!(refused.may_succeed_later());
        assert!(watch("noisy", 0).is_err());
        let quiet = (0..).map_while(|key| watch("quiet", key).ok());
        let quiet: Vec<_> = quiet.collect();
        assert_eq!(quiet.len(), WATCHERS_MAX / 2);
        watches.truncate(WATCHERS_MAX / 2 - 1);
        assert!(watch("noisy", WATCHERS_MAX).is_ok());
        drop((watches, quiet));
        assert!(notify.counts().is_empty());
    }
}
