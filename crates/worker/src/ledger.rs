//! The tasks that a worker holds and the slots that it offers.

use crate::recent::Recent;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The tasks that a worker holds and the slots that it offers.
///
/// `T` is a task's token, and `N` is what the worker notes about a task while it holds it. The tasks
/// outlive a stream. Messages and slots are counted from the beginning of each stream.
#[derive(Debug)]
pub struct Ledger<T, N> {
    held: BTreeMap<T, N>,
    held_max: usize,
    /// Tasks that are no longer held.
    over: Recent<T>,
    is_taking: bool,
    stream: StreamCounts,
}

/// What is counted from the beginning of a stream.
#[derive(Debug, Default)]
struct StreamCounts {
    /// The number of the last message.
    sequence: u64,
    /// How many tasks were received.
    received: u64,
    /// The last offer.
    offered: u64,
}

impl<T: Ord, N> Ledger<T, N> {
    /// An empty ledger of a worker that offers no slots while it holds `held_max` tasks.
    #[must_use]
    pub fn new(held_max: usize) -> Self {
        Self {
            held: BTreeMap::new(),
            held_max,
            over: Recent::new(),
            is_taking: true,
            stream: StreamCounts::default(),
        }
    }

    /// Starts a new stream. Its hello must name the [held tasks](Self::held), so that the leader
    /// assigns again only what never arrived (A4).
    pub fn open(&mut self) {
        self.stream = StreamCounts::default();
    }

    /// The number of the next message on this stream, from 1.
    pub fn next_sequence(&mut self) -> u64 {
        self.stream.sequence += 1;
        self.stream.sequence
    }

    /// Records a received task. Returns false if it was received before: on the handshake a leader
    /// assigns again what is leased to the worker, and its earlier messages with the same tasks may
    /// arrive later, even after a task is over.
    pub fn receive(&mut self, token: T, note: N) -> bool {
        self.stream.received += 1;
        if self.held.contains_key(&token) || self.over.contains(&token) {
            return false;
        }
        self.held.insert(token, note);
        true
    }

    /// Stops holding a task.
    pub fn close<Q: Ord + ?Sized>(&mut self, token: &Q)
    where
        T: Borrow<Q>,
    {
        if let Some((token, _)) = self.held.remove_entry(token) {
            self.over.insert(token);
        }
    }

    /// The held tasks: those that run, and those whose report was not answered.
    #[must_use]
    pub fn held(&self) -> &BTreeMap<T, N> {
        &self.held
    }

    /// The note about a held task.
    pub fn note_mut<Q: Ord + ?Sized>(&mut self, token: &Q) -> Option<&mut N>
    where
        T: Borrow<Q>,
    {
        self.held.get_mut(token)
    }

    /// Sets whether the worker offers slots. A draining worker does not.
    pub fn set_taking(&mut self, is_taking: bool) {
        self.is_taking = is_taking;
    }

    /// Whether the worker offers slots.
    #[must_use]
    pub fn is_taking(&self) -> bool {
        self.is_taking
    }

    /// The offer of a worker with `free` slots, if it differs from the last one: the total number
    /// of tasks that the worker takes on this stream.
    pub fn offer(&mut self, free: usize) -> Option<u64> {
        let total = self.slots_total(free);
        let is_new = total != self.stream.offered;
        self.stream.offered = total;
        is_new.then_some(total)
    }

    /// Whether [`Self::offer`] has one.
    #[must_use]
    pub fn has_offer(&self, free: usize) -> bool {
        self.slots_total(free) != self.stream.offered
    }

    /// A task whose report waits for its response takes no slot, so that the round trip to the
    /// leader costs none. But such tasks must not pile up, so `held_max` limits them.
    fn slots_total(&self, free: usize) -> u64 {
        if !self.is_taking {
            return self.stream.received;
        }
        let free = free.min(self.held_max.saturating_sub(self.held.len()));
        self.stream.received + free as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(ledger: &Ledger<u8, ()>) -> Vec<u8> {
        ledger.held().keys().copied().collect()
    }

    #[test]
    fn an_offer_is_a_running_total_and_is_made_once() {
        let mut ledger = Ledger::new(4);
        assert_eq!((ledger.has_offer(2), ledger.offer(2)), (true, Some(2)));
        assert_eq!((ledger.has_offer(2), ledger.offer(2)), (false, None));
        assert!(ledger.receive(1, ()));
        assert_eq!(ledger.offer(1), None, "the task has taken a slot");
        assert_eq!(ledger.offer(2), Some(3));
    }

    #[test]
    fn no_more_tasks_are_taken_than_may_be_held() {
        let mut ledger = Ledger::new(2);
        assert_eq!(ledger.offer(5), Some(2));
        for token in [1, 2] {
            ledger.receive(token, ());
        }
        assert_eq!(ledger.offer(5), None);
        ledger.close(&1);
        assert_eq!(ledger.offer(5), Some(3));
    }

    #[test]
    fn a_task_is_held_until_it_is_closed_and_known_afterwards() {
        let mut ledger = Ledger::new(2);
        assert!(ledger.receive(1, ()));
        assert!(!ledger.receive(1, ()));
        assert_eq!(held(&ledger), [1]);
        ledger.close(&1);
        assert!(!ledger.receive(1, ()));
        assert!(held(&ledger).is_empty());
    }

    #[test]
    fn a_task_that_arrives_again_counts_and_keeps_its_note() {
        let mut ledger = Ledger::new(4);
        assert!(ledger.receive(1, "first"));
        assert!(!ledger.receive(1, "second"));
        assert_eq!(ledger.note_mut(&1), Some(&mut "first"));
        assert_eq!(ledger.offer(1), Some(3), "the leader has counted both");
    }

    #[test]
    fn a_stream_counts_from_its_beginning_and_the_tasks_stay() {
        let mut ledger = Ledger::new(4);
        ledger.receive(1, ());
        assert_eq!(ledger.offer(2), Some(3));
        assert_eq!((ledger.next_sequence(), ledger.next_sequence()), (1, 2));
        ledger.open();
        assert_eq!(held(&ledger), [1]);
        assert_eq!(ledger.next_sequence(), 1);
        assert_eq!(ledger.offer(2), Some(2));
    }

    #[test]
    fn a_worker_that_takes_nothing_takes_back_its_offer() {
        let mut ledger = Ledger::new(4);
        ledger.offer(4);
        ledger.receive(1, ());
        ledger.set_taking(false);
        assert_eq!(ledger.offer(3), Some(1));
        ledger.set_taking(true);
        assert_eq!(ledger.offer(3), Some(4));
    }
}
