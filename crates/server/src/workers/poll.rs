//! One open poll: what a worker would take, and the way to it.

use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::{Assignment, Offer, TaskToken};
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Messages that may wait for one worker; one that is slower than this loses its poll.
pub(super) const QUEUE_MESSAGES_MAX: usize = 4_096;

/// What a poll delivers.
#[derive(Debug)]
pub(crate) enum ToWorker {
    /// A task with its input.
    Task(Box<Assignment>, Json),
    /// A task that the worker should give up.
    Revoked(TaskToken),
    /// The worker should take no more tasks (A21).
    Draining,
}

/// The poll ended: leadership was lost, a newer poll of the worker took its place, or the worker
/// was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollClosed;

/// Who polls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkerKey {
    /// The worker's namespace.
    pub(crate) namespace: Namespace,
    /// The worker's id.
    pub(crate) worker: WorkerId,
}

/// What a worker asks for when it opens a poll.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Who it is.
    pub(crate) key: WorkerKey,
    /// The actions that it takes.
    pub(crate) actions: Vec<ActionName>,
    /// Its registered labels (A3).
    pub(crate) labels: BTreeMap<String, String>,
}

/// An open poll.
///
/// Slots are counted as running totals, so that a task that crosses a message on the way is not
/// counted twice: free = `tasks_total_max` − `sent` − `offered`.
pub(super) struct Poll {
    request: Request,
    sender: mpsc::Sender<ToWorker>,
    tasks_total_max: u64,
    sent: u64,
    /// Slots in entries that are proposed but not applied.
    offered: u64,
}

impl Poll {
    pub(super) fn new(request: Request, sender: mpsc::Sender<ToWorker>) -> Self {
        Self {
            request,
            sender,
            tasks_total_max: 0,
            sent: 0,
            offered: 0,
        }
    }

    pub(super) fn key(&self) -> &WorkerKey {
        &self.request.key
    }

    pub(super) fn actions(&self) -> &[ActionName] {
        &self.request.actions
    }

    pub(super) fn takes(&self, namespace: &Namespace, action: &ActionName) -> bool {
        self.request.key.namespace == *namespace
            && self.request.actions.contains(action)
            && self.free() > 0
    }

    fn free(&self) -> u64 {
        self.tasks_total_max
            .saturating_sub(self.sent)
            .saturating_sub(self.offered)
    }

    /// Sets the running total; true when there are more free slots than before.
    pub(super) fn set_total(&mut self, tasks_total_max: u64) -> bool {
        let before = self.free();
        self.tasks_total_max = tasks_total_max;
        self.free() > before
    }

    /// Offers half of the free slots to the next entry, so that entries in flight share them.
    pub(super) fn offer(&mut self, number: u64) -> Option<Offer> {
        let slots = self
            .free()
            .div_ceil(2)
            .min(u64::from(flotilla_engine::limits::SLOTS_MAX));
        let slots = u32::try_from(slots).ok().filter(|slots| *slots > 0)?;
        self.offered += u64::from(slots);
        Some(Offer {
            namespace: self.request.key.namespace.clone(),
            worker: self.request.key.worker.clone(),
            poll: number,
            actions: self.request.actions.clone(),
            labels: self.request.labels.clone(),
            slots,
        })
    }

    /// An entry with an offer of this poll was applied.
    pub(super) fn take_back(&mut self, slots: u32) {
        self.offered = self.offered.saturating_sub(u64::from(slots));
    }

    /// Sends a message; fails when the worker is too slow or its session is over.
    pub(super) fn send(&mut self, message: ToWorker) -> Result<(), PollClosed> {
        let is_task = matches!(message, ToWorker::Task(..));
        self.sender.try_send(message).map_err(|_| PollClosed)?;
        self.sent += u64::from(is_task);
        Ok(())
    }
}
