//! The open polls, as they are under the hub's lock.

use super::PollSummary;
use super::pending_actions::{PendingActions, ScanResult};
use super::poll::{
    ActionKey, Poll, PollClosed, Request, RoutedDelivery, SessionSender, ToWorker, WorkerKey,
};
use crate::bug::PlantedBug;
use flotilla_engine::Offer;
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::ENTRY_OFFERS_MAX;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::{Duration, Instant};

/// A message of an applied entry for one worker.
pub(crate) struct Delivery {
    /// The worker that gets it.
    pub(crate) key: WorkerKey,
    /// The poll whose offer was used; `None`: the worker's current poll.
    pub(crate) poll: Option<u64>,
    /// The message itself.
    pub(crate) message: ToWorker,
}

/// The open polls.
pub(super) struct Polls {
    /// Whether polls may be opened: only within a term of this node.
    is_taking: bool,
    open: BTreeMap<u64, Poll>,
    by_worker: BTreeMap<WorkerKey, u64>,
    /// Starts at a random number: entries of another leader, or of this node's last process, are
    /// applied here too, and their polls must not be taken for ours.
    last_number: u64,
    /// Where the next offers begin, so that every poll gets its turn.
    next_offered: u64,
    pending_actions: PendingActions,
    /// Since when embedded workers have been without a poll.
    departures: BTreeMap<WorkerKey, Instant>,
    bug: Option<PlantedBug>,
}

impl Default for Polls {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Polls {
    pub(super) fn new(bug: Option<PlantedBug>) -> Self {
        Self {
            is_taking: false,
            open: BTreeMap::new(),
            by_worker: BTreeMap::new(),
            last_number: rand::random::<u64>() / 2,
            next_offered: 0,
            pending_actions: PendingActions::default(),
            departures: BTreeMap::new(),
            bug,
        }
    }

    pub(super) fn begin_term(&mut self) {
        self.is_taking = true;
    }

    pub(super) fn end_term(&mut self) {
        self.is_taking = false;
        self.open.clear();
        self.by_worker.clear();
        self.pending_actions.clear();
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
        self.pending_actions.clear();
    }

    pub(super) fn open(
        &mut self,
        request: Request,
        session: SessionSender,
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
        let poll = Poll::new(request, session);
        self.pending_actions.join(poll.action_keys(), number);
        self.open.insert(number, poll);
        Ok(number)
    }

    /// Closes a poll; true if that leaves an embedded worker without one.
    pub(super) fn close(&mut self, number: u64) -> bool {
        let Some(poll) = self.remove(number) else {
            return false;
        };
        // An older poll is removed when a newer one is opened, so this is the worker's only one.
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
        self.pending_actions.leave(poll.action_keys(), number);
        Some(poll)
    }

    /// Why a poll of the worker is no longer open.
    pub(super) fn why_closed(&self, key: &WorkerKey) -> PollClosed {
        if !self.is_taking {
            PollClosed::NotLeading
        } else if self.is_open(key) {
            PollClosed::Replaced
        } else {
            PollClosed::Lost
        }
    }

    /// The open polls by namespace.
    pub(super) fn summaries(&self) -> BTreeMap<Namespace, PollSummary> {
        let mut summaries: BTreeMap<Namespace, PollSummary> = BTreeMap::new();
        for poll in self.open.values() {
            let summary = summaries.entry(poll.key().namespace.clone()).or_default();
            summary.workers_count += 1;
            summary.free_slots = summary.free_slots.saturating_add(poll.vacant());
        }
        for (namespace, _) in self.pending_actions.waiting() {
            let summary = summaries.entry(namespace.clone()).or_default();
            summary.waiting_actions_count += 1;
        }
        summaries
    }

    /// Sets the running total of a poll; false if the poll is no longer open.
    pub(super) fn set_total(&mut self, number: u64, max_tasks_total: u64) -> bool {
        let Some(poll) = self.open.get_mut(&number) else {
            return false;
        };
        if poll.set_total(max_tasks_total) {
            self.pending_actions.slot_freed(poll.action_keys());
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
                self.pending_actions.slot_freed(poll.action_keys());
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
                self.pending_actions.slot_freed(poll.action_keys());
            }
        }
    }

    #[cfg(test)]
    pub(super) fn offer_bytes(&self, number: u64) -> usize {
        self.open[&number].offer_bytes()
    }

    /// Offers for an entry of `commands_count` commands.
    pub(super) fn offer(&mut self, commands_count: usize, bytes_max: usize) -> Vec<Offer> {
        let mut offers = Vec::new();
        let mut bytes = 0;
        let turn = self.next_offered;
        // One round over all polls, in two parts: `range_mut` cannot wrap around.
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

    /// An entry was applied: frees its offers' slots, except those of the tasks among the
    /// deliveries. Both happen in one step; otherwise, slots that are in use could be offered in
    /// between.
    pub(super) fn return_slots(
        &mut self,
        offers: &[(u64, u32)],
        deliveries: Vec<Delivery>,
    ) -> Vec<RoutedDelivery> {
        for (number, slots) in offers {
            if let Some(poll) = self.open.get_mut(number) {
                let is_lost = self.bug == Some(PlantedBug::LostSlots);
                poll.take_back(if is_lost { 0 } else { *slots });
            }
        }
        let routed = deliveries.into_iter();
        let mut routed: Vec<_> = routed.filter_map(|delivery| self.route(delivery)).collect();
        if self.bug == Some(PlantedBug::DoubleLease) {
            let copies: Vec<_> = routed.iter().filter_map(|it| self.copy(it)).collect();
            routed.extend(copies);
        }
        for (number, _) in offers {
            if let Some(poll) = self.open.get(number)
                && poll.has_free_slot()
            {
                self.pending_actions.slot_freed(poll.action_keys());
            }
        }
        routed
    }

    /// Finds the poll for a delivery: its own, or the one that has replaced it. A task in flight to
    /// the older one still arrives.
    fn route(&mut self, delivery: Delivery) -> Option<RoutedDelivery> {
        let own = delivery
            .poll
            .filter(|number| self.open.contains_key(number));
        let number = own.or_else(|| self.by_worker.get(&delivery.key).copied())?;
        let poll = self.open.get_mut(&number)?;
        match delivery.message {
            ToWorker::Task(_) => poll.count_task(),
            ToWorker::Draining => poll.set_draining(true),
            ToWorker::Revoked(_) => {}
        }
        Some(RoutedDelivery {
            number,
            messages: poll.messages(),
            message: delivery.message,
        })
    }

    /// The same task for another worker of the action: the planted bug.
    fn copy(&self, routed: &RoutedDelivery) -> Option<RoutedDelivery> {
        let ToWorker::Task(assignment) = &routed.message else {
            return None;
        };
        let own = self.open.get(&routed.number)?;
        let others = self.open.iter().filter(|(number, poll)| {
            **number != routed.number && poll.action_keys() == own.action_keys()
        });
        others
            .into_iter()
            .next()
            .map(|(number, poll)| RoutedDelivery {
                number: *number,
                messages: poll.messages(),
                message: ToWorker::Task(assignment.clone()),
            })
    }

    pub(super) fn task_waits(&mut self, key: &ActionKey) {
        self.pending_actions.task_waits(key, is_free_in(&self.open));
    }

    pub(super) fn is_any_due(&self) -> bool {
        self.pending_actions.is_any_due()
    }

    pub(super) fn take_due(&mut self) -> Vec<ActionKey> {
        self.pending_actions.take_due()
    }

    /// The labels of the polls that have a free slot for the action.
    pub(super) fn free_labels(&self, key: &ActionKey) -> BTreeSet<BTreeMap<String, String>> {
        let polls = self.pending_actions.polls(key);
        let free =
            polls.filter_map(|number| self.open.get(&number).filter(|poll| poll.has_free_slot()));
        free.map(|poll| poll.labels().clone()).collect()
    }

    pub(super) fn record_scan(&mut self, key: &ActionKey, scan_result: ScanResult) {
        self.pending_actions
            .record_scan(key, scan_result, is_free_in(&self.open));
    }

    pub(super) fn forget_scans(&mut self) {
        self.pending_actions.forget_scans(is_free_in(&self.open));
    }

    pub(super) fn is_open(&self, key: &WorkerKey) -> bool {
        self.by_worker.contains_key(key)
    }

    /// Records embedded workers without a poll for which it is unknown when they last had one.
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

    /// The embedded workers that have been without a poll for `absence`, each once; if there is
    /// none, the time at which there may be.
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
