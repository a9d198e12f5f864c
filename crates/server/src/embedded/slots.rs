//! A node's slots: how many tasks its embedded workers run concurrently, over all namespaces.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// A node's slots, shared by its workers. WASM is CPU-bound, so by default there is one slot per
/// processor that the node may use.
///
/// A worker offers slots only while some are free; with several workers, each offers its share of
/// them, at least one. So a slot that one namespace does not use serves another immediately. The
/// cost: when one slot is left, one task per namespace may arrive before the other workers have
/// withdrawn their offers. Such a task waits for a slot, first come, first served, and its lease is
/// kept.
pub(crate) struct Slots {
    total: usize,
    running: Arc<Semaphore>,
    usage: watch::Sender<Usage>,
}

/// The workers that share the slots, and the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    workers: usize,
    /// Tasks that run or wait for a slot.
    tasks: usize,
}

/// One worker's share of the slots, while it has a stream.
pub(super) struct Share {
    slots: Arc<Slots>,
    usage: watch::Receiver<Usage>,
}

/// A task's position in the line for a slot. Dropping it leaves the line.
pub(super) struct SlotTicket {
    slots: Arc<Slots>,
}

/// A slot in which a task runs. Dropping it frees the slot.
pub(super) struct Slot {
    _ticket: SlotTicket,
    // `None` only if the semaphore was closed, which never happens.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// This many slots, all free.
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            running: Arc::new(Semaphore::new(total)),
            usage: watch::Sender::new(Usage::default()),
        })
    }

    /// The total number of slots.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// The number of tasks that run or wait for a slot.
    pub(crate) fn tasks_count(&self) -> usize {
        self.usage.borrow().tasks
    }

    /// Takes a place in the line for a slot.
    pub(super) fn take(self: &Arc<Self>) -> SlotTicket {
        self.usage.send_modify(|usage| usage.tasks += 1);
        SlotTicket {
            slots: self.clone(),
        }
    }

    /// Adds a worker that shares the slots.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        self.usage.send_modify(|usage| usage.workers += 1);
        Share {
            slots: self.clone(),
            usage: self.usage.subscribe(),
        }
    }
}

impl Share {
    /// The number of slots that the worker may offer now.
    pub(super) fn offer(&mut self) -> usize {
        let usage = *self.usage.borrow_and_update();
        let free = self.slots.total.saturating_sub(usage.tasks);
        free.div_ceil(usage.workers.max(1))
    }

    /// Waits until [`Self::offer`] may return another number.
    pub(super) async fn changed(&mut self) {
        // The slots own the sender, and this share keeps the slots.
        drop(self.usage.changed().await);
    }

    /// Takes a place in the line for a task that has arrived.
    pub(super) fn take(&self) -> SlotTicket {
        self.slots.take()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.slots.usage.send_modify(|usage| usage.workers -= 1);
    }
}

impl SlotTicket {
    /// Leaves the line; the slots have a new place at its end.
    pub(super) fn leave(self) -> Arc<Slots> {
        self.slots.clone()
    }

    /// Waits for a slot.
    pub(super) async fn slot(self) -> Slot {
        let permit = self.slots.running.clone().acquire_owned().await;
        Slot {
            _permit: permit.ok(),
            _ticket: self,
        }
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        self.slots.usage.send_modify(|usage| usage.tasks -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_worker_alone_offers_all_free_slots() {
        let slots = Slots::new(4);
        let mut share = slots.share();
        assert_eq!(share.offer(), 4);
        let tickets: Vec<SlotTicket> = (0..5).map(|_| share.take()).collect();
        assert_eq!(share.offer(), 0);
        drop(tickets);
        assert_eq!(share.offer(), 4);
    }

    #[test]
    fn workers_offer_their_part_and_nothing_when_no_slot_is_free() {
        let slots = Slots::new(4);
        let (mut one, mut other) = (slots.share(), slots.share());
        assert_eq!((one.offer(), other.offer()), (2, 2));
        let taken = [one.take(), one.take(), one.take()];
        assert_eq!((one.offer(), other.offer()), (1, 1), "one is free");
        let last = other.take();
        assert_eq!((one.offer(), other.offer()), (0, 0));
        drop(taken);
        drop(other);
        assert_eq!(one.offer(), 3, "it is alone, and one task still runs");
        drop(last);
    }

    #[tokio::test]
    async fn a_worker_learns_what_the_others_take() {
        let slots = Slots::new(1);
        let (mut one, other) = (slots.share(), slots.share());
        assert_eq!(one.offer(), 1);
        assert!(one.changed().now_or_never().is_none());
        let ticket = other.take();
        one.changed().await;
        assert_eq!(one.offer(), 0);
        drop(ticket);
        one.changed().await;
        assert_eq!(one.offer(), 1);
    }

    #[test]
    fn a_task_that_leaves_the_line_lets_another_be_offered_its_slot() {
        let slots = Slots::new(1);
        let mut share = slots.share();
        let ticket = share.take();
        assert_eq!(share.offer(), 0);
        let line = ticket.leave();
        assert_eq!(share.offer(), 1);
        let _ticket = line.take();
        assert_eq!(share.offer(), 0);
    }

    #[tokio::test]
    async fn a_task_without_a_slot_waits_its_turn() {
        let slots = Slots::new(1);
        let (one, other) = (slots.share(), slots.share());
        let running = one.take().slot().await;
        let mut first = Box::pin(other.take().slot());
        let mut second = Box::pin(one.take().slot());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(running);
        assert!(second.as_mut().now_or_never().is_none(), "it came later");
        let running = first.await;
        drop(running);
        drop(second.await);
    }
}
