//! One open poll: what its worker would take, and the channel to it.

use crate::channel::{NotSent, Sender};
use flotilla_engine::ids::{ActionName, Namespace, WorkerId};
use flotilla_engine::limits::SLOTS_MAX;
use flotilla_engine::{Assignment, Offer, TaskToken};
use std::collections::BTreeMap;
use tokio_util::sync::DropGuard;

/// An action of a namespace.
pub type ActionKey = (Namespace, ActionName);

/// What a poll delivers.
#[derive(Debug)]
pub enum ToWorker {
    /// A task. Its input is read when it is sent: inputs are large, and a worker may be slow.
    Task(Box<Assignment>),
    /// A task that the worker should give up.
    Revoked(Revocation),
    /// The worker should take no more tasks (A21).
    Draining,
}

/// A task that a worker should give up.
#[derive(Clone, Copy, Debug)]
pub struct Revocation {
    /// The task.
    pub token: TaskToken,
    /// Whether the worker still holds the task, and the step waits for its answer (W54).
    pub is_answer_awaited: bool,
}

impl ToWorker {
    /// Its approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let named = match self {
            Self::Task(assignment) => assignment
                .labels
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum(),
            Self::Revoked(_) | Self::Draining => 0,
        };
        named + size_of::<Assignment>()
    }
}

/// Why the poll is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollClosed {
    /// This node does not lead.
    #[error("expected this node to lead, but it does not")]
    NotLeading,
    /// A newer poll of the worker has replaced it.
    #[error("expected the worker to have one poll, but it has opened a newer one")]
    Replaced,
    /// Messages in flight to the worker were lost: it read too slowly, or this node fell behind.
    #[error("expected to deliver every task, but the worker or this node fell behind")]
    Lost,
}

/// The worker that polls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerKey {
    /// The worker's namespace.
    pub namespace: Namespace,
    /// The worker's id.
    pub worker: WorkerId,
}

/// What a worker asks for when it opens a poll.
#[derive(Clone, Debug)]
pub struct Request {
    /// The worker's namespace and id.
    pub key: WorkerKey,
    /// The actions that it takes, each once.
    pub actions: Vec<ActionName>,
    /// Its registered labels (A3).
    pub labels: BTreeMap<String, String>,
    /// Its registered concurrency.
    pub concurrency: u32,
    /// Whether it drains: it gets no tasks (A21).
    pub is_draining: bool,
    /// Whether it is an embedded worker, which has a poll as long as its node lives.
    pub is_embedded: bool,
}

/// The hub's side of the channel to a session.
pub(super) struct SessionSender {
    pub(super) messages: Sender<ToWorker>,
    /// Tells the session that the poll is closed, although it may have messages left.
    pub(super) _closing: DropGuard,
}

/// An open poll.
///
/// Slots are counted as running totals, so that a task that crosses a message in flight is not
/// counted twice.
pub(super) struct Poll {
    request: Request,
    action_keys: Vec<ActionKey>,
    session: SessionSender,
    /// How many tasks the worker takes on this poll, since it opened.
    max_tasks_total: u64,
    /// How many of them were sent to it.
    sent: u64,
    /// Slots in entries that are proposed but not applied.
    offered: u64,
}

impl Poll {
    pub(super) fn new(request: Request, session: SessionSender) -> Self {
        let namespace = &request.key.namespace;
        let actions = request.actions.iter();
        let action_keys = actions.map(|action| (namespace.clone(), action.clone()));
        Self {
            action_keys: action_keys.collect(),
            request,
            session,
            max_tasks_total: 0,
            sent: 0,
            offered: 0,
        }
    }

    pub(super) fn key(&self) -> &WorkerKey {
        &self.request.key
    }

    pub(super) fn action_keys(&self) -> &[ActionKey] {
        &self.action_keys
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.request.is_embedded
    }

    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        &self.request.labels
    }

    /// The channel to its worker.
    pub(super) fn messages(&self) -> Sender<ToWorker> {
        self.session.messages.clone()
    }

    /// Whether a slot is neither taken by a task nor offered to an entry in flight.
    pub(super) fn has_free_slot(&self) -> bool {
        self.free() > 0
    }

    /// How many tasks it would take now.
    pub(super) fn free(&self) -> u64 {
        self.vacant().saturating_sub(self.offered)
    }

    /// How many of its slots have no task, whether or not an entry in flight offers them.
    pub(super) fn vacant(&self) -> u64 {
        if self.request.is_draining {
            return 0;
        }
        self.max_tasks_total.saturating_sub(self.sent)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.request.is_draining
    }

    pub(super) fn set_draining(&mut self, is_draining: bool) {
        self.request.is_draining = is_draining;
    }

    /// Sets the running total, up to the worker's registered concurrency; true if there are more
    /// free slots than before.
    pub(super) fn set_total(&mut self, max_tasks_total: u64) -> bool {
        let before = self.free();
        let slots_max = u64::from(self.request.concurrency.min(SLOTS_MAX));
        self.max_tasks_total = max_tasks_total.min(self.sent.saturating_add(slots_max));
        self.free() > before
    }

    /// Offers free slots to the next entry, which holds `commands_count` commands: one slot per
    /// command, since a command usually readies one task, but at least half of the free slots.
    /// Entries in flight share them.
    pub(super) fn offer(&mut self, number: u64, commands_count: usize) -> Option<Offer> {
        let expected = u64::try_from(commands_count).unwrap_or(u64::MAX);
        let free = self.free();
        let slots = free.div_ceil(2).max(expected).min(free);
        let slots = slots.min(u64::from(SLOTS_MAX));
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

    /// The maximum size of one of its offers in an entry, in bytes.
    pub(super) fn offer_bytes(&self) -> usize {
        /// The length prefix of a text.
        const LENGTH_BYTES: usize = 3;
        /// The poll, the slots and the numbers of actions and labels.
        const NUMBERS_BYTES: usize = 9 + 5 + 2 * LENGTH_BYTES;
        let text = |text: &str| text.len() + LENGTH_BYTES;
        let WorkerKey { namespace, worker } = &self.request.key;
        let actions = self.request.actions.iter();
        let actions: usize = actions.map(|action| text(action.as_str())).sum();
        let labels = self.request.labels.iter();
        let labels: usize = labels.map(|(name, value)| text(name) + text(value)).sum();
        text(namespace.as_str()) + text(worker.as_str()) + actions + labels + NUMBERS_BYTES
    }

    /// An entry with an offer of this poll was applied.
    pub(super) fn take_back(&mut self, slots: u32) {
        self.offered = self.offered.saturating_sub(u64::from(slots));
    }

    /// Counts a task for the worker.
    pub(super) fn count_task(&mut self) {
        self.sent += 1;
    }

    /// Uncounts a task that is not sent after all.
    pub(super) fn discount_task(&mut self) {
        self.sent = self.sent.saturating_sub(1);
    }
}

/// A message to the worker of a known poll.
pub(super) struct RoutedDelivery {
    pub(super) number: u64,
    pub(super) messages: Sender<ToWorker>,
    pub(super) message: ToWorker,
}

impl RoutedDelivery {
    /// Sends the message; fails if the worker is too slow or gone.
    pub(super) fn send(self) -> Result<(), NotSent> {
        let bytes = self.message.bytes();
        self.messages.try_send(self.message, bytes)
    }
}

/// Test support that several modules share.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use flotilla_engine::definition::Tracking;
    use flotilla_engine::ids::ActionRunNumber;
    use flotilla_engine::{PayloadOwner, PayloadRef};

    /// A task of the action.
    pub(in crate::hub) fn task(action: &str) -> ToWorker {
        let action_run = ActionRunNumber(1);
        let owner = PayloadOwner::ActionRun(action_run);
        ToWorker::Task(Box::new(Assignment {
            token: TaskToken {
                action_run,
                attempt: 1,
                secret: 1,
            },
            namespace: Namespace::default_namespace(),
            action: ActionName::new(action).unwrap(),
            input: PayloadRef { owner, position: 0 },
            lease_expires_at_ms: 0,
            timeout_ms: 0,
            created_at_ms: 0,
            run_id: None,
            step: None,
            labels: BTreeMap::new(),
            is_cancelled: false,
            tracking: Tracking::Sync,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Bounds, channel};
    use flotilla_engine::limits::{LABELS_MAX, NAME_BYTES_MAX, PROCESSES_MAX};
    use flotilla_engine::{Entry, NodeId, Stamp};
    use tokio_util::sync::CancellationToken;

    fn poll(request: Request) -> Poll {
        let bounds = Bounds {
            messages_max: 1,
            bytes_max: 1,
        };
        let session = SessionSender {
            messages: channel(bounds).0,
            _closing: CancellationToken::new().drop_guard(),
        };
        Poll::new(request, session)
    }

    fn request(concurrency: u32) -> Request {
        Request {
            key: WorkerKey {
                namespace: Namespace::new("n".repeat(63)).unwrap(),
                worker: WorkerId::new("w".repeat(NAME_BYTES_MAX)).unwrap(),
            },
            actions: (0..PROCESSES_MAX)
                .map(|number| ActionName::new(format!("a{number:0>255}")).unwrap())
                .collect(),
            labels: (0..LABELS_MAX)
                .map(|number| (format!("{number:0>256}"), "v".repeat(NAME_BYTES_MAX)))
                .collect(),
            concurrency,
            is_draining: false,
            is_embedded: false,
        }
    }

    #[test]
    fn a_draining_worker_has_no_free_slots() {
        let mut poll = poll(request(4));
        poll.set_total(4);
        poll.set_draining(true);
        assert!(!poll.has_free_slot() && poll.offer(1, 1).is_none());
        poll.set_draining(false);
        assert!(poll.has_free_slot());
    }

    #[test]
    fn a_worker_gets_no_more_tasks_at_once_than_it_registered_for() {
        let mut poll = poll(request(4));
        assert!(poll.set_total(u64::MAX));
        assert_eq!(poll.free(), 4);
        poll.count_task();
        assert_eq!(poll.free(), 3);
        assert!(poll.set_total(u64::MAX));
        assert_eq!(poll.free(), 4);
        poll.discount_task();
        assert!(!poll.set_total(2));
        assert_eq!(poll.free(), 2);
    }

    #[test]
    fn an_entry_is_offered_a_slot_for_each_of_its_commands_and_at_least_half_of_the_free_ones() {
        let mut poll = poll(request(64));
        poll.set_total(64);
        let mut offered = |commands_count| poll.offer(1, commands_count).map(|offer| offer.slots);
        assert_eq!(offered(1), Some(32));
        assert_eq!(offered(20), Some(20));
        assert_eq!(offered(20), Some(12));
        assert_eq!(offered(20), None);
    }

    #[test]
    fn an_offer_takes_no_more_bytes_than_is_said_before() {
        let mut poll = poll(request(SLOTS_MAX));
        poll.set_total(u64::MAX);
        let offers = vec![poll.offer(u64::MAX, 1).unwrap()];
        let entry = |offers| Entry {
            stamp: Stamp {
                now_ms: 0,
                seed: 0,
                node: NodeId(1),
            },
            offers,
            commands: Vec::new(),
        };
        let bytes = entry(offers).encode().len() - entry(Vec::new()).encode().len();
        assert!((bytes..bytes + 32).contains(&poll.offer_bytes()), "{bytes}");
        assert!(poll.offer_bytes() < flotilla_replica::OFFERS_BYTES_MAX);
    }
}
