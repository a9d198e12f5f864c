//! The worker registry (A20): one table for registrations, others for what changes with every task.

use super::label::{decode_text, encode_text};
use super::{ActionRunBlock, ActionRunSet, Key, tables};
use crate::ids::{ActionRunNumber, Identity, Namespace, NodeId, WorkerId, WorkerNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By id. Live until the worker deregisters.
    20 Workers((Namespace, WorkerId)) -> WorkerRecord, HOT;
    /// By id. Live as long as the worker's record.
    21 WorkerActivities((Namespace, WorkerId)) -> WorkerActivityRecord, HOT;
    /// Workers by number, for their timers. Live until the worker deregisters or gets another number.
    22 WorkerNumbers(WorkerNumber) -> (Namespace, WorkerId);
    /// How many workers a namespace has. Lives as long as it has any.
    30 WorkerCounts(Namespace) -> u64;
    /// Workers that may be evicted for new ones, by their last heartbeat in milliseconds: those that are unhealthy and
    /// hold no lease. Live while that holds.
    31 SilentWorkers((Namespace, u64, WorkerId)) -> ();
    /// The tasks that workers hold, by the number of the worker, in the order in which the leases end, in blocks. Live
    /// as long as the leases.
    71 WorkerLeases((WorkerNumber, LeaseBlock)) -> ActionRunSet, HOT;
    /// The counts of the processes that a worker has registered. Live until it registers without the process, or as
    /// long as the worker's record.
    72 WorkerProcesses((Namespace, WorkerId, Process)) -> ProcessRecord, HOT;
    /// Workers that are gone, by their number, while leases of theirs are left to free (A4).
    73 GoneWorkers(WorkerNumber) -> GoneWorkerRecord;
}

/// A worker's registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// A new one with each start of its process: a change frees its leases (A4).
    pub incarnation: u64,
    /// The incarnations of the processes that had the id before, oldest first: while the worker is healthy, they may
    /// not take it back (A20).
    pub replaced: Vec<u64>,
    /// What kind of tasks it takes.
    pub kind: WorkerType,
    /// The number of tasks that it runs concurrently; enforced by the worker itself (A22).
    pub max_concurrency: u32,
    /// The processes that it handles.
    pub processes: Vec<Process>,
    /// The labels by which tasks select it (A3).
    pub labels: BTreeMap<String, String>,
    /// Free-form metadata for people.
    pub metadata: Option<Json>,
    /// Groups the workers of one machine.
    pub machine_id: Option<String>,
    /// The node that it is a part of, for an embedded worker (A9).
    pub node: Option<NodeId>,
    /// Who registered it.
    pub owner: WorkerOwner,
    /// When it first registered, in milliseconds.
    pub registered_at_ms: u64,
}

/// Who registered a worker, and thereby owns its id (X25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerOwner {
    /// A caller without a credential: everybody may take the id.
    Anyone,
    /// The cluster: it is the worker of a node.
    Cluster,
    /// Callers that act for an identity.
    Identity(Identity),
}

/// What kind of tasks a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerType {
    /// Tasks of actions.
    Action,
    /// Records of streams.
    Stream,
}

/// An action or a stream and group that a worker handles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The action's name, or `stream/group`.
    pub name: String,
    /// Which of the two.
    pub kind: ProcessKind,
}

/// What a process handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcessKind {
    /// An action.
    Action,
    /// A consumer group of a stream.
    StreamConsumer,
}

impl Key for Process {
    fn encode(&self, out: &mut Vec<u8>) {
        let byte: u8 = match self.kind {
            ProcessKind::Action => 1,
            ProcessKind::StreamConsumer => 2,
        };
        byte.encode(out);
        encode_text(&self.name, out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let kind = match u8::decode(bytes)? {
            1 => ProcessKind::Action,
            2 => ProcessKind::StreamConsumer,
            _ => return None,
        };
        let name = decode_text(bytes)?;
        Some(Self { name, kind })
    }
}

/// The place of a lease among those of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeasePlace {
    /// When the lease ends, in milliseconds; [`LEASE_SUSPENDED_MS`] for that of a quarantined task whose end has come.
    pub expires_at_ms: u64,
    /// The task.
    pub task: ActionRunNumber,
}

impl LeasePlace {
    /// Before the places of all leases that end at `expires_at_ms` or later.
    pub(crate) fn first_from(expires_at_ms: u64) -> Self {
        Self {
            expires_at_ms,
            task: ActionRunNumber(0),
        }
    }
}

/// The end of a lease that does not expire: its task is quarantined (design rule 10). In milliseconds.
pub const LEASE_SUSPENDED_MS: u64 = u64::MAX;

/// Leases of a worker that end at the same time, on tasks of one block: those that begin in one entry share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseBlock {
    /// When the leases end, in milliseconds; see [`LeasePlace`].
    pub expires_at_ms: u64,
    /// The block of the tasks.
    pub tasks: ActionRunBlock,
}

impl LeaseBlock {
    /// The block of a lease.
    #[must_use]
    pub fn of(place: LeasePlace) -> Self {
        Self {
            expires_at_ms: place.expires_at_ms,
            tasks: ActionRunBlock::of(place.task),
        }
    }

    /// The places of the leases on `tasks`, in order.
    pub fn places(self, tasks: ActionRunSet) -> impl DoubleEndedIterator<Item = LeasePlace> {
        tasks.of_block(self.tasks).map(move |task| LeasePlace {
            expires_at_ms: self.expires_at_ms,
            task,
        })
    }
}

impl Key for LeaseBlock {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.expires_at_ms, self.tasks).encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (expires_at_ms, tasks) = Key::decode(bytes)?;
        Some(Self {
            expires_at_ms,
            tasks,
        })
    }
}

/// The activity of a worker. Its size does not depend on what the worker does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerActivityRecord {
    /// Its number. It gets another one when the leases under this number are to be freed (A4).
    pub number: WorkerNumber,
    /// Whether it gets tasks.
    pub status: WorkerStatus,
    /// Tasks in flight, as last reported.
    pub load: u32,
    /// When it last sent a heartbeat, in milliseconds.
    pub last_heartbeat_at_ms: u64,
    /// When its heartbeat timer is due, in milliseconds; `None` while it is unhealthy.
    pub silence_due_ms: Option<u64>,
    /// The number of tasks that it holds (A4).
    pub leases_count: u32,
    /// When its leases end.
    pub lease_watch: LeaseWatch,
    /// Tasks completed in its life.
    pub tasks_completed: u64,
    /// Tasks failed in its life.
    pub tasks_failed: u64,
}

/// When the leases of a worker end. The row of a lease that has ended leaves a tombstone, so a search begins at a bound
/// that moves up with the leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseWatch {
    /// No lease ends before this time, in milliseconds.
    pub ends_from_ms: u64,
    /// Leases that were begun or extended since the bound was last searched.
    pub begun_count: u32,
    /// When the timer is due, in milliseconds; `None` without a timer. There is one, and not later than the bound, while
    /// the worker holds a lease that may end.
    pub due_ms: Option<u64>,
}

/// Whether a worker sends heartbeats, and whether it drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerStatus {
    /// Its last heartbeat is less than 90 s old.
    Healthy,
    /// It is healthy, and gets no new tasks (A21).
    Draining,
    /// Its last heartbeat is older, or it is known to be gone.
    Unhealthy,
    /// It is unhealthy, and still drains when it recovers (A20).
    UnhealthyDraining,
}

/// The counts of one process of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Successful executions.
    pub run_count: u64,
    /// Failed executions.
    pub fail_count: u64,
    /// When the last one ended, in milliseconds.
    pub last_run_at_ms: Option<u64>,
}

/// A worker that is gone and whose leases are being freed (A4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneWorkerRecord {
    /// Where it was registered.
    pub namespace: Namespace,
    /// Its id, which another process may have by now.
    pub worker: WorkerId,
    /// What becomes of the tasks.
    pub held: HeldTasks,
    /// The first lease that is left.
    pub next: LeasePlace,
    /// When its timer is due, in milliseconds.
    pub due_ms: u64,
}

/// What becomes of the tasks that a worker held when it went (A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeldTasks {
    /// They are handed out again as the same attempts.
    Returned,
    /// Their attempts have failed: the worker's node died, perhaps because of one of them.
    Lost,
}

impl WorkerActivityRecord {
    /// Changes the status.
    ///
    /// # Panics
    /// If the transition to `next` is not allowed.
    pub(crate) fn become_status(&mut self, next: WorkerStatus) {
        let status = self.status;
        assert!(
            status.may_become(next),
            "expected a status that may follow {status:?}, but {next:?} may not"
        );
        self.status = next;
    }

    /// The manual's status; `idle` is derived (A20).
    #[must_use]
    pub fn published_status(&self) -> &'static str {
        let is_idle = self.load == 0 && self.leases_count == 0;
        match self.status {
            WorkerStatus::Unhealthy | WorkerStatus::UnhealthyDraining => "unhealthy",
            WorkerStatus::Draining => "draining",
            WorkerStatus::Healthy if is_idle => "idle",
            WorkerStatus::Healthy => "active",
        }
    }
}

impl WorkerStatus {
    /// Whether the transition to `next` is allowed: silence and recovery keep the drain, a drain keeps the health, and
    /// only a registration ends a drain.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (
                Self::Healthy | Self::Draining | Self::Unhealthy | Self::UnhealthyDraining,
                Self::Healthy,
            )
            | (Self::Healthy | Self::Draining | Self::UnhealthyDraining, Self::Draining)
            | (Self::Healthy | Self::Unhealthy, Self::Unhealthy)
            | (
                Self::Draining | Self::Unhealthy | Self::UnhealthyDraining,
                Self::UnhealthyDraining,
            ) => true,
            (Self::Unhealthy, Self::Draining)
            | (Self::Draining | Self::UnhealthyDraining, Self::Unhealthy)
            | (Self::Healthy, Self::UnhealthyDraining) => false,
        }
    }

    /// Whether it sends heartbeats.
    #[must_use]
    pub fn is_healthy(self) -> bool {
        match self {
            Self::Healthy | Self::Draining => true,
            Self::Unhealthy | Self::UnhealthyDraining => false,
        }
    }

    /// Whether it drains; preserved while it is unhealthy (A20).
    #[must_use]
    pub fn is_draining(self) -> bool {
        match self {
            Self::Draining | Self::UnhealthyDraining => true,
            Self::Healthy | Self::Unhealthy => false,
        }
    }

    /// The status after a heartbeat.
    pub(crate) fn after_heartbeat(self) -> Self {
        match self {
            Self::Healthy | Self::Unhealthy => Self::Healthy,
            Self::Draining | Self::UnhealthyDraining => Self::Draining,
        }
    }

    /// The status after the last heartbeat became too old.
    pub(crate) fn after_silence(self) -> Self {
        match self {
            Self::Healthy | Self::Unhealthy => Self::Unhealthy,
            Self::Draining | Self::UnhealthyDraining => Self::UnhealthyDraining,
        }
    }

    /// The status after a drain began.
    pub(crate) fn after_drain(self) -> Self {
        match self {
            Self::Healthy | Self::Draining => Self::Draining,
            Self::Unhealthy | Self::UnhealthyDraining => Self::UnhealthyDraining,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_status_is_allowed_and_only_a_registration_ends_a_drain() {
        let all = [
            WorkerStatus::Healthy,
            WorkerStatus::Draining,
            WorkerStatus::Unhealthy,
            WorkerStatus::UnhealthyDraining,
        ];
        for status in all {
            let changes = [
                WorkerStatus::after_heartbeat,
                WorkerStatus::after_silence,
                WorkerStatus::after_drain,
            ];
            for change in changes {
                assert!(status.may_become(change(status)), "{status:?}");
            }
            assert!(status.may_become(WorkerStatus::Healthy), "{status:?}");
            let others = all.into_iter().filter(|next| status.may_become(*next));
            let mut others = others.filter(|next| *next != WorkerStatus::Healthy);
            let keeps_drain = others.all(|next| next.is_draining() || !status.is_draining());
            assert!(keeps_drain, "{status:?}");
        }
    }

    #[test]
    fn a_process_comes_back_from_its_key_whatever_its_name_contains() {
        let process = |name: &str, kind| Process {
            name: name.to_owned(),
            kind,
        };
        let processes = [
            process("", ProcessKind::Action),
            process("a", ProcessKind::Action),
            process("a\0", ProcessKind::Action),
            process("a\0b", ProcessKind::Action),
            process("ab", ProcessKind::Action),
            process("a/b", ProcessKind::StreamConsumer),
        ];
        let mut encoded = Vec::new();
        for process in &processes {
            let mut bytes = Vec::new();
            process.encode(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Process::decode(&mut rest).as_ref(), Some(process));
            assert!(rest.is_empty());
            encoded.push(bytes);
        }
        assert!(encoded.is_sorted());
        for bytes in [&b""[..], b"\x03a\0\x01", b"\x01a"] {
            assert_eq!(Process::decode(&mut &*bytes), None, "{bytes:02x?}");
        }
    }
}
