//! The leader's open polls: where offers come from and where tasks go.
//!
//! A poll's free slots are offered to the entries that the leader proposes (design rule 3). What an
//! entry did not use comes back when it is applied; what it used arrives as a `DeliverTask` effect.
//! All of it is memory of one leader's term: when it is lost, workers open their polls anew and name
//! the tasks that they hold, and the rest is handed out again from the state (A4).

use super::poll::{Poll, PollClosed, QUEUE_MESSAGES_MAX, Request, ToWorker, WorkerKey};
use flotilla_engine::Offer;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::limits::ENTRY_OFFERS_MAX;
use flotilla_replica::OfferSource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// An action of a namespace.
pub(crate) type ActionKey = (Namespace, ActionName);

/// Closes a poll when it is dropped, however its caller ends.
pub(crate) struct PollGuard<'h> {
    hub: &'h Hub,
    number: u64,
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.hub.close(self.number);
    }
}

/// The open polls of this node.
#[derive(Default)]
pub(crate) struct Hub {
    // A std mutex: it is never held across an await, and offers are taken from a thread.
    polls: Mutex<Polls>,
    /// Rung when some action may have both a free slot and a ready task.
    wanted: Notify,
    /// Rung when a worker's poll ends and no other one has taken its place.
    departed: Notify,
}

struct Polls {
    open: BTreeMap<u64, Poll>,
    by_worker: BTreeMap<WorkerKey, u64>,
    /// Begins at random: entries of another leader, or of this node's last process, are applied here
    /// too, and what they say of their polls must not be taken for ours.
    last_number: u64,
    /// Where the next offers begin, so that every poll gets its turn.
    next_offered: u64,
    /// Actions to look at.
    dirty: BTreeSet<ActionKey>,
    departures: BTreeSet<WorkerKey>,
}

impl Default for Polls {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            by_worker: BTreeMap::new(),
            last_number: rand::random::<u64>() / 2,
            next_offered: 0,
            dirty: BTreeSet::new(),
            departures: BTreeSet::new(),
        }
    }
}

impl OfferSource for Hub {
    fn take(&self) -> Vec<Offer> {
        let mut polls = self.lock();
        let start = polls.next_offered;
        let mut offers = Vec::new();
        let Polls { open, .. } = &mut *polls;
        let numbers: Vec<u64> = open
            .range(start..)
            .chain(open.range(..start))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if offers.len() == ENTRY_OFFERS_MAX {
                polls.next_offered = number;
                break;
            }
            offers.extend(
                polls
                    .open
                    .get_mut(&number)
                    .and_then(|poll| poll.offer(number)),
            );
        }
        offers
    }
}

impl Hub {
    /// Opens a poll; an older one of the same worker is closed.
    pub(crate) fn open(&self, request: Request) -> (u64, mpsc::Receiver<ToWorker>) {
        let (sender, receiver) = mpsc::channel(QUEUE_MESSAGES_MAX);
        let mut polls = self.lock();
        polls.last_number += 1;
        let number = polls.last_number;
        polls.departures.remove(&request.key);
        if let Some(older) = polls.by_worker.insert(request.key.clone(), number) {
            polls.open.remove(&older);
        }
        polls.open.insert(number, Poll::new(request, sender));
        (number, receiver)
    }

    /// Closes the poll when the guard is dropped.
    pub(crate) fn guard(&self, number: u64) -> PollGuard<'_> {
        PollGuard { hub: self, number }
    }

    /// Closes a poll. Tasks that are still under way to it stay leased, and are handed out again
    /// when the worker polls anew.
    pub(crate) fn close(&self, number: u64) {
        let mut polls = self.lock();
        let Some(poll) = polls.open.remove(&number) else {
            return;
        };
        let key = poll.key().clone();
        if polls.by_worker.get(&key) == Some(&number) {
            polls.by_worker.remove(&key);
            polls.departures.insert(key);
            self.departed.notify_one();
        }
    }

    /// Closes every poll: this node no longer leads, or it lost track of what was assigned.
    pub(crate) fn close_all(&self) {
        let mut polls = self.lock();
        polls.open.clear();
        polls.by_worker.clear();
        polls.dirty.clear();
        polls.departures.clear();
    }

    /// Sets how many tasks the poll takes in all.
    ///
    /// # Errors
    /// [`PollClosed`] when it is not open any more.
    pub(crate) fn set_total(&self, number: u64, tasks_total_max: u64) -> Result<(), PollClosed> {
        let mut polls = self.lock();
        let poll = polls.open.get_mut(&number).ok_or(PollClosed)?;
        if poll.set_total(tasks_total_max) {
            let keys = action_keys(poll);
            polls.dirty.extend(keys);
            self.wanted.notify_one();
        }
        Ok(())
    }

    /// An entry was applied: the slots that it offered are free again, but for those that the
    /// deliveries which follow take.
    pub(crate) fn take_back(&self, offers: &[(u64, u32)]) {
        let mut polls = self.lock();
        let mut keys = Vec::new();
        for (number, slots) in offers {
            if let Some(poll) = polls.open.get_mut(number) {
                poll.take_back(*slots);
                keys.extend(action_keys(poll));
            }
        }
        if !keys.is_empty() {
            polls.dirty.extend(keys);
            self.wanted.notify_one();
        }
    }

    /// Sends to the poll `number`, or to the poll that has taken its place: a task that was under
    /// way to the older one arrives all the same.
    pub(crate) fn send(&self, key: &WorkerKey, number: Option<u64>, message: ToWorker) {
        let mut polls = self.lock();
        let open = number.filter(|number| polls.open.contains_key(number));
        let Some(number) = open.or_else(|| polls.by_worker.get(key).copied()) else {
            return;
        };
        let Some(poll) = polls.open.get_mut(&number) else {
            return;
        };
        if poll.send(message).is_err() {
            drop(polls);
            self.close(number);
        }
    }

    /// Marks an action as one that has a ready task.
    pub(crate) fn want(&self, key: ActionKey) {
        let mut polls = self.lock();
        if polls.open.values().any(|poll| poll.takes(&key.0, &key.1)) {
            polls.dirty.insert(key);
            self.wanted.notify_one();
        }
    }

    /// Waits for actions that some poll takes and that may have a ready task.
    pub(crate) async fn wanted(&self) -> BTreeSet<ActionKey> {
        loop {
            let dirty = std::mem::take(&mut self.lock().dirty);
            if !dirty.is_empty() {
                return dirty;
            }
            self.wanted.notified().await;
        }
    }

    /// Whether some poll has a free slot for the action.
    pub(crate) fn has_slot(&self, (namespace, action): &ActionKey) -> bool {
        self.lock()
            .open
            .values()
            .any(|poll| poll.takes(namespace, action))
    }

    /// Waits until some worker's poll has ended without another in its place.
    pub(crate) async fn departed(&self) -> BTreeSet<WorkerKey> {
        loop {
            let departures = std::mem::take(&mut self.lock().departures);
            if !departures.is_empty() {
                return departures;
            }
            self.departed.notified().await;
        }
    }

    /// Whether the worker has an open poll.
    pub(crate) fn is_open(&self, key: &WorkerKey) -> bool {
        self.lock().by_worker.contains_key(key)
    }

    fn lock(&self) -> MutexGuard<'_, Polls> {
        // A panic while the lock was held cannot leave the maps half-changed in a way that matters:
        // polls are a cache of what workers said.
        self.polls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn action_keys(poll: &Poll) -> Vec<ActionKey> {
    let namespace = &poll.key().namespace;
    poll.actions()
        .iter()
        .map(|action| (namespace.clone(), action.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::WorkerId;

    fn request(worker: &str) -> Request {
        Request {
            key: WorkerKey {
                namespace: Namespace::default_namespace(),
                worker: WorkerId::new(worker).unwrap(),
            },
            actions: vec![ActionName::new("charge").unwrap()],
            labels: BTreeMap::new(),
        }
    }

    fn slots(hub: &Hub) -> Vec<u32> {
        hub.take().into_iter().map(|offer| offer.slots).collect()
    }

    #[test]
    fn entries_in_flight_share_the_free_slots_and_give_the_rest_back() {
        let hub = Hub::default();
        let (number, _receiver) = hub.open(request("w"));
        hub.set_total(number, 4).unwrap();
        assert_eq!(slots(&hub), [2]);
        assert_eq!(slots(&hub), [1]);
        assert_eq!(slots(&hub), [1]);
        assert_eq!(slots(&hub), [0_u32; 0]);
        hub.take_back(&[(number, 2)]);
        assert_eq!(slots(&hub), [1]);
    }

    #[test]
    fn a_newer_poll_takes_the_place_of_the_older_one() {
        let hub = Hub::default();
        let (older, mut older_receiver) = hub.open(request("w"));
        let (_newer, mut newer_receiver) = hub.open(request("w"));
        assert!(older_receiver.try_recv().is_err());
        hub.send(&request("w").key, Some(older), ToWorker::Draining);
        assert!(matches!(newer_receiver.try_recv(), Ok(ToWorker::Draining)));
        assert_eq!(hub.set_total(older, 1), Err(PollClosed));
    }

    #[tokio::test]
    async fn a_slot_makes_its_actions_wanted_and_a_closed_poll_departs() {
        let hub = Hub::default();
        let (number, _receiver) = hub.open(request("w"));
        hub.set_total(number, 1).unwrap();
        let key = (
            Namespace::default_namespace(),
            ActionName::new("charge").unwrap(),
        );
        assert_eq!(hub.wanted().await, BTreeSet::from([key.clone()]));
        assert!(hub.has_slot(&key));
        hub.close(number);
        assert_eq!(hub.departed().await, BTreeSet::from([request("w").key]));
        assert!(!hub.has_slot(&key) && !hub.is_open(&request("w").key));
    }
}
