//! A node's slots: how many tasks its embedded workers run concurrently, over all namespaces.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// A node's slots, shared by its workers. WASM is CPU-bound, so by default there is one slot per
/// processor that the node may use.
///
/// A worker offers slots only while some are free; with several workers, each offers its share of
/// them, at least one. So a slot that one namespace does not use serves another immediately. The
/// cost: when one slot is left, one task per namespace may arrive before the other workers have
/// withdrawn their offers. Such a task waits for a slot, first come, first served, and its lease is
/// kept.
///
/// If long calls of some workers hold all slots, a worker without a running task uses one more slot. So workers of other namespaces always make progress, one task at a time, at the cost of one call more than `total`.
pub(crate) struct Slots {
    total: usize,
    line: Mutex<Line>,
    usage: watch::Sender<Usage>,
}

/// The number of a worker among those that have shared the slots.
type WorkerNumber = u64;

/// The tasks that run, and those that wait for a slot.
#[derive(Default)]
struct Line {
    running: usize,
    /// Only workers that have any.
    running_by_worker: BTreeMap<WorkerNumber, usize>,
    /// The oldest first.
    waiting: VecDeque<Waiting>,
}

/// A task that waits for a slot.
struct Waiting {
    worker: WorkerNumber,
    /// Fails if the task has left the line.
    slot: oneshot::Sender<Permit>,
}

/// The workers that share the slots, and the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Usage {
    workers: usize,
    /// Tasks that run or wait for a slot.
    tasks: usize,
    /// The same, of each worker that has any.
    tasks_by_worker: BTreeMap<WorkerNumber, usize>,
    worker_next: WorkerNumber,
}

/// One worker's share of the slots, while it has a stream.
pub(super) struct Share {
    place: Place,
    usage: watch::Receiver<Usage>,
}

/// Where a worker's tasks wait for slots.
#[derive(Clone)]
pub(super) struct Place {
    slots: Arc<Slots>,
    worker: WorkerNumber,
}

/// A task's position in the line for a slot. Dropping it leaves the line.
pub(super) struct SlotTicket {
    place: Place,
}

/// A slot in which a task runs. Dropping it frees the slot.
pub(super) struct Slot {
    _ticket: SlotTicket,
    // `None` only if the line was dropped, which never happens: the ticket keeps it.
    _permit: Option<Permit>,
}

/// The right to run. Dropping it passes it on.
struct Permit {
    place: Place,
}

impl Line {
    /// Whether a task of the worker may run now.
    fn has_slot_for(&self, worker: WorkerNumber, total: usize) -> bool {
        let is_without = !self.running_by_worker.contains_key(&worker);
        self.running < total || (is_without && self.running < total + Slots::EXTRA)
    }

    fn begin(&mut self, worker: WorkerNumber) {
        self.running += 1;
        *self.running_by_worker.entry(worker).or_default() += 1;
    }

    fn end(&mut self, worker: WorkerNumber) {
        self.running -= 1;
        decrement(&mut self.running_by_worker, worker);
    }

    /// Takes the first waiting task that may run now out of the line.
    fn next(&mut self, total: usize) -> Option<Waiting> {
        // Those that have left the line.
        self.waiting.retain(|one| !one.slot.is_closed());
        let mut waiting = self.waiting.iter();
        let position = waiting.position(|one| self.has_slot_for(one.worker, total))?;
        self.waiting.remove(position)
    }
}

/// Counts one less of the worker.
fn decrement(counts: &mut BTreeMap<WorkerNumber, usize>, worker: WorkerNumber) {
    if let Some(count) = counts.get_mut(&worker) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&worker);
        }
    }
}

impl Slots {
    /// Extra slots, for workers that have no running task.
    pub(crate) const EXTRA: usize = 1;

    /// This many slots, all free.
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            line: Mutex::default(),
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

    /// Adds a worker that shares the slots.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        let mut worker = 0;
        self.usage.send_modify(|usage| {
            usage.workers += 1;
            worker = usage.worker_next;
            usage.worker_next += 1;
        });
        Share {
            place: Place {
                slots: self.clone(),
                worker,
            },
            usage: self.usage.subscribe(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing under the lock panics halfway.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets waiting tasks run, as far as there are slots.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let mut line = self.line();
            let Some(Waiting { worker, slot }) = line.next(self.total) else {
                return;
            };
            line.begin(worker);
            // A permit that is not received is dropped, which takes the lock.
            drop(line);
            let permit = Permit {
                place: Place {
                    slots: self.clone(),
                    worker,
                },
            };
            drop(slot.send(permit));
        }
    }
}

impl Share {
    /// The number of slots that the worker may offer now.
    pub(super) fn offer(&mut self) -> usize {
        let usage = self.usage.borrow_and_update();
        let total = self.place.slots.total;
        let free = total.saturating_sub(usage.tasks);
        let has_tasks = usage.tasks_by_worker.contains_key(&self.place.worker);
        // However many tasks of a worker wait, it takes at most all slots.
        let tasks = usage
            .tasks_by_worker
            .values()
            .map(|tasks| (*tasks).min(total));
        let is_extra_free = tasks.sum::<usize>() < total + Slots::EXTRA;
        match free.div_ceil(usage.workers.max(1)) {
            0 if !has_tasks && is_extra_free => Slots::EXTRA,
            offered => offered,
        }
    }

    /// Waits until [`Self::offer`] may return another number.
    pub(super) async fn changed(&mut self) {
        // The slots own the sender, and this share keeps the slots.
        drop(self.usage.changed().await);
    }

    /// Takes a place in the line for a task that has arrived.
    pub(super) fn take(&self) -> SlotTicket {
        self.place.take()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let usage = &self.place.slots.usage;
        usage.send_modify(|usage| usage.workers -= 1);
    }
}

impl Place {
    /// Takes a place in the line for a slot.
    pub(super) fn take(&self) -> SlotTicket {
        self.slots.usage.send_modify(|usage| {
            usage.tasks += 1;
            *usage.tasks_by_worker.entry(self.worker).or_default() += 1;
        });
        SlotTicket {
            place: self.clone(),
        }
    }
}

impl SlotTicket {
    /// Leaves the line; what is returned has a new place at its end.
    pub(super) fn leave(self) -> Place {
        self.place.clone()
    }

    /// Waits for a slot.
    pub(super) async fn slot(self) -> Slot {
        let (slot, granted) = oneshot::channel();
        let Place { slots, worker } = &self.place;
        let waiting = Waiting {
            worker: *worker,
            slot,
        };
        slots.line().waiting.push_back(waiting);
        slots.pass_on();
        let permit = granted.await;
        Slot {
            _permit: permit.ok(),
            _ticket: self,
        }
    }
}

impl Drop for SlotTicket {
    fn drop(&mut self) {
        let Place { slots, worker } = &self.place;
        slots.usage.send_modify(|usage| {
            usage.tasks -= 1;
            decrement(&mut usage.tasks_by_worker, *worker);
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Place { slots, worker } = &self.place;
        slots.line().end(*worker);
        slots.pass_on();
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
        let mut third = slots.share();
        assert_eq!(third.offer(), 1, "it has no task, so it may have one more");
        drop(third);
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
        assert_eq!(one.offer(), 1, "it has no task");
        let own = one.take();
        assert_eq!(one.offer(), 0);
        drop((own, ticket));
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
        let one = slots.share();
        let running = one.take().slot().await;
        let mut first = Box::pin(one.take().slot());
        let mut second = Box::pin(one.take().slot());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(running);
        assert!(second.as_mut().now_or_never().is_none(), "it came later");
        let running = first.await;
        drop(running);
        drop(second.await);
    }

    #[tokio::test]
    async fn a_worker_whose_tasks_hold_all_slots_leaves_another_one_a_slot() {
        let slots = Slots::new(2);
        let (long, short, third) = (slots.share(), slots.share(), slots.share());
        let held = [long.take().slot().await, long.take().slot().await];
        let mut waiting = Box::pin(long.take().slot());
        assert!(waiting.as_mut().now_or_never().is_none());
        for _ in 0..3 {
            let running = short.take().slot().now_or_never();
            assert!(running.is_some(), "it runs beside the long ones");
            let mut next = Box::pin(third.take().slot());
            assert!(next.as_mut().now_or_never().is_none(), "one at a time");
            drop(running);
            assert!(next.as_mut().now_or_never().is_some(), "it is its turn");
        }
        drop(held);
        drop(waiting.await);
    }

    #[tokio::test]
    async fn a_task_that_gives_up_passes_its_slot_on() {
        let slots = Slots::new(1);
        let share = slots.share();
        let running = share.take().slot().await;
        let mut given_up = Box::pin(share.take().slot());
        assert!(given_up.as_mut().now_or_never().is_none());
        let mut next = Box::pin(share.take().slot());
        assert!(next.as_mut().now_or_never().is_none());
        // The first one in the line gets the slot, and never looks at it.
        drop(running);
        drop(given_up);
        drop(next.await);
        assert_eq!((slots.tasks_count(), slots.line().running), (0, 0));
    }
}
