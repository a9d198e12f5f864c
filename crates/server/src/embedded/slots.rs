//! The slots of a node: how many tasks its embedded workers run at once, all namespaces together.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The slots of a node, shared by its workers. WASM is bound by the processor, so there are as many
/// as the machine runs threads.
///
/// A worker offers slots only while some are free, and with several workers each offers its part of
/// them, at least one. So a slot that one namespace does not use serves another at once; the price
/// is that at the last free slot one task may come for each namespace before the others have taken
/// their offer back. Such a task waits for a slot, first come, first served, with its lease kept.
pub(super) struct Slots {
    total: usize,
    running: Arc<Semaphore>,
    usage: watch::Sender<Usage>,
}

/// Who shares the slots, and what is left of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    workers: usize,
    /// Tasks that run or wait for a slot.
    tasks: usize,
}

/// One worker's part in the slots, while it has a stream.
pub(super) struct Share {
    slots: Arc<Slots>,
    usage: watch::Receiver<Usage>,
}

/// A task's place in the line for a slot. Leaves the line when it is dropped.
pub(super) struct Place {
    slots: Arc<Slots>,
}

/// A slot in which a task runs. Free again when it is dropped.
pub(super) struct Slot {
    _place: Place,
    // None only if the semaphore was closed, which nobody does.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// As many slots as the machine runs threads.
    pub(super) fn of_machine() -> Arc<Self> {
        Self::new(std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get))
    }

    fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            running: Arc::new(Semaphore::new(total)),
            usage: watch::Sender::new(Usage::default()),
        })
    }

    /// How many there are.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Another worker shares the slots from now on.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        self.usage.send_modify(|usage| usage.workers += 1);
        Share {
            slots: self.clone(),
            usage: self.usage.subscribe(),
        }
    }
}

impl Share {
    /// How many slots the worker may offer now.
    pub(super) fn offer(&mut self) -> usize {
        let usage = *self.usage.borrow_and_update();
        let free = self.slots.total.saturating_sub(usage.tasks);
        free.div_ceil(usage.workers.max(1))
    }

    /// Waits until [`Self::offer`] may say something else.
    pub(super) async fn changed(&mut self) {
        // The sender lives in the slots, which this share keeps.
        drop(self.usage.changed().await);
    }

    /// A task has come.
    pub(super) fn take(&self) -> Place {
        self.slots.usage.send_modify(|usage| usage.tasks += 1);
        Place {
            slots: self.slots.clone(),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.slots.usage.send_modify(|usage| usage.workers -= 1);
    }
}

impl Place {
    /// Waits for a slot.
    pub(super) async fn slot(self) -> Slot {
        let permit = self.slots.running.clone().acquire_owned().await;
        Slot {
            _permit: permit.ok(),
            _place: self,
        }
    }
}

impl Drop for Place {
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
        let places: Vec<Place> = (0..5).map(|_| share.take()).collect();
        assert_eq!(share.offer(), 0);
        drop(places);
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
        let place = other.take();
        one.changed().await;
        assert_eq!(one.offer(), 0);
        drop(place);
        one.changed().await;
        assert_eq!(one.offer(), 1);
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
