//! The open polls, as they are under the hub's lock.

use super::channel::Sender;
use super::demand::{Demands, Looked};
use super::poll::{ActionKey, Addressed, Poll, PollClosed, Request, ToWorker, WorkerKey};
use crate::faults::planted::{self, Bug};
use flotilla_engine::Offer;
use flotilla_engine::limits::ENTRY_OFFERS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::{Duration, Instant};

/// What an applied entry has for a worker.
pub(crate) struct Parcel {
    /// The worker.
    pub(crate) key: WorkerKey,
    /// The poll whose offer was taken; without one, whichever the worker has.
    pub(crate) poll: Option<u64>,
    /// The message.
    pub(crate) message: ToWorker,
}

/// The open polls.
pub(super) struct Polls {
    /// Whether polls may be opened: only within a term of this node.
    is_taking: bool,
    open: BTreeMap<u64, Poll>,
    by_worker: BTreeMap<WorkerKey, u64>,
    /// Begins at random: entries of another leader, or of this node's last process, are applied here
    /// too, and what they say of their polls must not be taken for ours.
    last_number: u64,
    /// Where the next offers begin, so that every poll gets its turn.
    next_offered: u64,
    demands: Demands,
    /// Since when embedded workers have been without a poll.
    departures: BTreeMap<WorkerKey, Instant>,
}

impl Default for Polls {
    fn default() -> Self {
        Self {
            is_taking: false,
            open: BTreeMap::new(),
            by_worker: BTreeMap::new(),
            last_number: rand::random::<u64>() / 2,
            next_offered: 0,
            demands: Demands::default(),
            departures: BTreeMap::new(),
        }
    }
}

impl Polls {
    pub(super) fn begin_term(&mut self) {
        self.is_taking = true;
    }

    pub(super) fn end_term(&mut self) {
        self.is_taking = false;
        self.open.clear();
        self.by_worker.clear();
        self.demands.clear();
        self.departures.clear();
    }

    pub(super) fn is_taking(&self) -> bool {
        self.is_taking
    }

    pub(super) fn close_all(&mut self) {
        for poll in std::mem::take(&mut self.open).into_values() {
            self.note_departure(&poll);
        }
        self.by_worker.clear();
        self.demands.clear();
    }

    pub(super) fn open(
        &mut self,
        request: Request,
        messages: Sender<ToWorker>,
    ) -> Result<u64, PollClosed> {
        if !self.is_taking {
            return Err(PollClosed::NotLeading);
        }
        self.last_number += 1;
        let number = self.last_number;
        self.departures.remove(&request.key);
        if let Some(older) = self.by_worker.insert(request.key.clone(), number) {
            self.remove(older);
        }
        let poll = Poll::new(request, messages);
        self.demands.join(poll.action_keys(), number);
        self.open.insert(number, poll);
        Ok(number)
    }

    /// Closes a poll; true when that leaves an embedded worker without one.
    pub(super) fn close(&mut self, number: u64) -> bool {
        let Some(poll) = self.remove(number) else {
            return false;
        };
        // An older poll is removed when a newer one is opened, so this one is the worker's only.
        self.by_worker.remove(poll.key());
        self.note_departure(&poll);
        poll.is_embedded()
    }

    fn note_departure(&mut self, poll: &Poll) {
        if poll.is_embedded() {
            self.departures.insert(poll.key().clone(), Instant::now());
        }
    }

    fn remove(&mut self, number: u64) -> Option<Poll> {
        let poll = self.open.remove(&number)?;
        self.demands.leave(poll.action_keys(), number);
        Some(poll)
    }

    /// Why a poll of the worker that was open is not any more.
    pub(super) fn why_closed(&self, key: &WorkerKey) -> PollClosed {
        if !self.is_taking {
            PollClosed::NotLeading
        } else if self.is_open(key) {
            PollClosed::Replaced
        } else {
            PollClosed::Lost
        }
    }

    /// Sets how many tasks a poll's worker takes in all; false when the poll is not open any more.
    pub(super) fn set_total(&mut self, number: u64, tasks_total_max: u64) -> bool {
        let Some(poll) = self.open.get_mut(&number) else {
            return false;
        };
        if poll.set_total(tasks_total_max) {
            self.demands.slot_came(poll.action_keys());
        }
        true
    }

    pub(super) fn is_draining(&self, number: u64) -> bool {
        self.open.get(&number).is_some_and(Poll::is_draining)
    }

    pub(super) fn set_draining(&mut self, number: u64, is_draining: bool) {
        if let Some(poll) = self.open.get_mut(&number) {
            poll.set_draining(is_draining);
            if poll.has_free_slot() {
                self.demands.slot_came(poll.action_keys());
            }
        }
    }

    pub(super) fn count_task(&mut self, number: u64) {
        if let Some(poll) = self.open.get_mut(&number) {
            poll.count_task();
        }
    }

    pub(super) fn discount_task(&mut self, number: u64) {
        if let Some(poll) = self.open.get_mut(&number) {
            poll.discount_task();
            if poll.has_free_slot() {
                self.demands.slot_came(poll.action_keys());
            }
        }
    }

    #[cfg(test)]
    pub(super) fn offer_bytes(&self, number: u64) -> usize {
        self.open[&number].offer_bytes()
    }

    /// Offers for an entry of so many commands.
    pub(super) fn offer(&mut self, commands_count: usize, bytes_max: usize) -> Vec<Offer> {
        let mut offers = Vec::new();
        let mut bytes = 0;
        let turn = self.next_offered;
        // One turn over all polls, in two parts: `range_mut` cannot wrap around.
        for part in [turn..u64::MAX, 0..turn] {
            for (number, poll) in self.open.range_mut(part) {
                if !poll.has_free_slot() {
                    continue;
                }
                bytes += poll.offer_bytes();
                if offers.len() == ENTRY_OFFERS_MAX || bytes > bytes_max {
                    self.next_offered = *number;
                    return offers;
                }
                offers.extend(poll.offer(*number, commands_count));
            }
        }
        offers
    }

    /// An entry was applied: its offers' slots are free again, but for those of the tasks among the
    /// parcels. Both at once: in between, slots would be offered that are taken.
    pub(super) fn settle(&mut self, offers: &[(u64, u32)], parcels: Vec<Parcel>) -> Vec<Addressed> {
        for (number, slots) in offers {
            if let Some(poll) = self.open.get_mut(number) {
                poll.take_back(*slots);
            }
        }
        let addressed = parcels.into_iter();
        let mut addressed: Vec<_> = addressed
            .filter_map(|parcel| self.address(parcel))
            .collect();
        if planted::has(Bug::DoubleLease) {
            let copies: Vec<_> = addressed.iter().filter_map(|it| self.copy(it)).collect();
            addressed.extend(copies);
        }
        for (number, _) in offers {
            if let Some(poll) = self.open.get(number)
                && poll.has_free_slot()
            {
                self.demands.slot_came(poll.action_keys());
            }
        }
        addressed
    }

    /// Finds the poll that a parcel goes to: its own, or the one that has taken its place. A task
    /// that was under way to the older one arrives all the same.
    fn address(&mut self, parcel: Parcel) -> Option<Addressed> {
        let own = parcel.poll.filter(|number| self.open.contains_key(number));
        let number = own.or_else(|| self.by_worker.get(&parcel.key).copied())?;
        let poll = self.open.get_mut(&number)?;
        match parcel.message {
            ToWorker::Task(_) => poll.count_task(),
            ToWorker::Draining => poll.set_draining(true),
            ToWorker::Revoked(_) => {}
        }
        Some(Addressed {
            number,
            messages: poll.messages(),
            message: parcel.message,
        })
    }

    /// The same task for another worker of the action: the bug that its name says.
    fn copy(&self, addressed: &Addressed) -> Option<Addressed> {
        let ToWorker::Task(assignment) = &addressed.message else {
            return None;
        };
        let own = self.open.get(&addressed.number)?;
        let others = self.open.iter().filter(|(number, poll)| {
            **number != addressed.number && poll.action_keys() == own.action_keys()
        });
        others.into_iter().next().map(|(number, poll)| Addressed {
            number: *number,
            messages: poll.messages(),
            message: ToWorker::Task(assignment.clone()),
        })
    }

    pub(super) fn task_waits(&mut self, key: &ActionKey) {
        self.demands.task_waits(key, is_free_in(&self.open));
    }

    pub(super) fn is_any_due(&self) -> bool {
        self.demands.is_any_due()
    }

    pub(super) fn take_due(&mut self) -> Vec<ActionKey> {
        self.demands.take_due()
    }

    /// The labels of the polls that have a free slot for the action.
    pub(super) fn free_labels(&self, key: &ActionKey) -> BTreeSet<BTreeMap<String, String>> {
        let polls = self.demands.polls(key);
        let free =
            polls.filter_map(|number| self.open.get(&number).filter(|poll| poll.has_free_slot()));
        free.map(|poll| poll.labels().clone()).collect()
    }

    pub(super) fn looked(&mut self, key: &ActionKey, looked: Looked) {
        self.demands.looked(key, looked, is_free_in(&self.open));
    }

    pub(super) fn forget_looks(&mut self) {
        self.demands.forget_looks(is_free_in(&self.open));
    }

    pub(super) fn is_open(&self, key: &WorkerKey) -> bool {
        self.by_worker.contains_key(key)
    }

    /// Books embedded workers without a poll, of which it is not known when they had one.
    pub(super) fn note_absent(
        &mut self,
        workers: impl IntoIterator<Item = WorkerKey>,
        at: Instant,
    ) {
        for worker in workers {
            if !self.is_open(&worker) {
                self.departures.entry(worker).or_insert(at);
            }
        }
    }

    /// The embedded workers that have been without a poll for `absence`, each once; when there is none, the
    /// time at which there may be.
    pub(super) fn take_absent(
        &mut self,
        absence: Duration,
    ) -> Result<Vec<WorkerKey>, Option<Instant>> {
        let now = Instant::now();
        let absent = self.departures.extract_if(.., |_, at| *at + absence <= now);
        let absent: Vec<_> = absent.map(|(worker, _)| worker).collect();
        if absent.is_empty() {
            Err(self.departures.values().min().map(|at| *at + absence))
        } else {
            Ok(absent)
        }
    }
}

fn is_free_in(open: &BTreeMap<u64, Poll>) -> impl Fn(u64) -> bool {
    move |number| open.get(&number).is_some_and(Poll::has_free_slot)
}
