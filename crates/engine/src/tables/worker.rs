//! The worker registry (A20): one table for registrations, another for the activity that changes with every task.

use super::tables;
use crate::ids::{ActionRunNumber, Namespace, NodeId, WorkerId, WorkerNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By id. Live until the worker deregisters.
    20 Workers((Namespace, WorkerId)) -> WorkerRecord, HOT;
    /// By id. Live as long as the worker's record.
    21 WorkerActivities((Namespace, WorkerId)) -> WorkerActivityRecord, HOT;
    /// Workers by number, for their timers. Live as long as the worker's record.
    22 WorkerNumbers(WorkerNumber) -> (Namespace, WorkerId);
    /// How many workers a namespace has. Lives as long as it has any.
    30 WorkerCounts(Namespace) -> u64;
    /// Workers that may be evicted for new ones, by their last heartbeat in milliseconds: those that are unhealthy and
    /// hold no lease. Live while that holds.
    31 SilentWorkers((Namespace, u64, WorkerId)) -> ();
}

/// A worker's registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its number.
    pub number: WorkerNumber,
    /// A new one with each start of its process: a change frees its leases (A4).
    pub incarnation: u64,
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
    /// When it first registered, in milliseconds.
    pub registered_at_ms: u64,
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

/// The activity of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerActivityRecord {
    /// Whether it gets tasks.
    pub state: WorkerState,
    /// Whether it drains; preserved while it is unhealthy (A20).
    pub is_draining: bool,
    /// Tasks in flight, as last reported.
    pub load: u32,
    /// When it last sent a heartbeat, in milliseconds.
    pub last_heartbeat_at_ms: u64,
    /// When its heartbeat timer is due, in milliseconds; `None` while it is unhealthy.
    pub silence_due_ms: Option<u64>,
    /// Tasks that it holds (A4).
    pub leases: Vec<ActionRunNumber>,
    /// Tasks completed in its life.
    pub tasks_completed: u64,
    /// Tasks failed in its life.
    pub tasks_failed: u64,
    /// By process name.
    pub processes: BTreeMap<String, ProcessRecord>,
}

/// Whether a worker sends heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerState {
    /// Its last heartbeat is less than 90 s old.
    Healthy,
    /// Its last heartbeat is older, or it is known to be gone.
    Unhealthy,
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

impl WorkerActivityRecord {
    /// The manual's status; `idle` is derived (A20).
    #[must_use]
    pub fn status(&self) -> &'static str {
        match (self.state, self.is_draining) {
            (WorkerState::Unhealthy, _) => "unhealthy",
            (WorkerState::Healthy, true) => "draining",
            (WorkerState::Healthy, false) if self.load == 0 && self.leases.is_empty() => "idle",
            (WorkerState::Healthy, false) => "active",
        }
    }
}
