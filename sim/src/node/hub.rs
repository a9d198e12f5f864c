//! The open polls of workers at the leader, from which the offers of entries are made.
//!
//! A stand-in for the server's hub, with one slot per poll and no gRPC streams of workers.

use flotilla_engine::ids::ActionName;
use flotilla_engine::{Assignment, NodeId, Offer};
use flotilla_replica::{AppliedBatch, OfferSource};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The open polls of workers at the leader.
#[derive(Default)]
pub(crate) struct Hub {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The term in which this node leads and accepts polls.
    term: Option<u64>,
    polls_count: u64,
    open: BTreeMap<u64, Poll>,
    /// Polls that are offered by an entry in flight.
    lent: BTreeSet<u64>,
}

struct Poll {
    offer: Offer,
    taker: oneshot::Sender<Assignment>,
}

impl Hub {
    /// This node leads: polls are accepted.
    pub(super) fn begin_term(&self, term: u64) {
        let mut state = self.state();
        state.term = Some(term);
        state.open.clear();
        state.lent.clear();
    }

    /// This node no longer leads: callers with open polls are notified.
    pub(super) fn end_term(&self) {
        let mut state = self.state();
        state.term = None;
        state.open.clear();
        state.lent.clear();
    }

    /// Opens a poll; `None` if this node does not lead.
    pub(super) fn open(&self, mut offer: Offer) -> Option<oneshot::Receiver<Assignment>> {
        let mut state = self.state();
        state.term?;
        state.polls_count += 1;
        let number = state.polls_count;
        offer.poll = number;
        let (taker, receiver) = oneshot::channel();
        state.open.insert(number, Poll { offer, taker });
        drop(state);
        self.changed.notify_one();
        Some(receiver)
    }

    /// Returns the offers of an applied entry to the open polls, except those that it used.
    pub(super) fn return_slots(&self, node: NodeId, batch: &AppliedBatch) {
        let mut state = self.state();
        if batch.node == node && state.term == Some(batch.term) {
            for (poll, _) in &batch.offers {
                state.lent.remove(poll);
            }
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Delivers an assignment to the poll that its entry, of this term, offered.
    pub(super) fn deliver(&self, poll: u64, term: u64, assignment: &Assignment) {
        let mut state = self.state();
        // Each process numbers polls from scratch, and a process leads a term once.
        if state.term != Some(term) {
            return;
        }
        if let Some(poll) = state.open.remove(&poll) {
            // A worker that stopped polling gets its task again with its next poll.
            drop(poll.taker.send(assignment.clone()));
        }
    }

    /// Notifies that tasks may have become ready.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits until a poll may have opened or returned, or tasks may have become ready.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The actions with open polls.
    pub(super) fn actions(&self) -> BTreeSet<ActionName> {
        let state = self.state();
        let waiting = state.open.values().filter(|poll| !poll.taker.is_closed());
        waiting
            .flat_map(|poll| poll.offer.actions.clone())
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfferSource for Hub {
    fn take(&self, _commands_count: usize, _bytes_max: usize) -> Vec<Offer> {
        let state = &mut *self.state();
        if state.term.is_none() {
            return Vec::new();
        }
        state.open.retain(|_, poll| !poll.taker.is_closed());
        let lent = &mut state.lent;
        let free = state
            .open
            .iter()
            .filter(|(number, _)| lent.insert(**number));
        free.map(|(_, poll)| poll.offer.clone()).collect()
    }
}
