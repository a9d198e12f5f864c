//! Work for the outside: hints that may be lost (design rule 6).

use crate::ids::{
    ActionName, ActionRunNumber, GroupName, Namespace, RunId, RunNumber, StepName, StreamName,
    WorkerId,
};
use crate::tables::PayloadRef;
use crate::task::TaskToken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hint of what the outside should do now. Drivers carry them out at the leader only; watchers of
/// runs listen on every node. Whatever is lost is found again in the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// A task is ready and the entry had no offer for it.
    WakeWorkers {
        /// Where.
        namespace: Namespace,
        /// For which action.
        action: ActionName,
    },
    /// A task was given to an offer: deliver it.
    DeliverTask {
        /// The worker.
        worker: WorkerId,
        /// The offer's poll.
        poll: u64,
        /// What to do.
        assignment: Box<Assignment>,
    },
    /// A task that a worker holds was taken back: tell it.
    RevokeTask {
        /// Where.
        namespace: Namespace,
        /// The worker.
        worker: WorkerId,
        /// The task.
        token: TaskToken,
    },
    /// A worker should stop taking tasks (A21).
    DrainWorker {
        /// Where.
        namespace: Namespace,
        /// The worker.
        worker: WorkerId,
    },
    /// A timer was set: look again at this time.
    ArmTimer {
        /// In milliseconds.
        due_ms: u64,
    },
    /// A schedule waits for this time: look again then (W40).
    ArmSchedule {
        /// In milliseconds.
        due_ms: u64,
    },
    /// A trigger has records to fire from this time on: look then (W41).
    ArmTrigger {
        /// In milliseconds.
        due_ms: u64,
    },
    /// Something that has ended is kept until this time: forget it then (W4).
    ArmRetention {
        /// In milliseconds.
        due_ms: u64,
    },
    /// A child's input waits for a verdict (W4).
    CheckChildInput {
        /// The parent.
        parent: RunNumber,
        /// Its activation.
        activation: u32,
    },
    /// A run's history grew or its status changed: tell its watchers.
    RunChanged {
        /// Where.
        namespace: Namespace,
        /// The run.
        run_id: RunId,
        /// Whether it is still open.
        is_open: bool,
    },
    /// A WASM action was registered, changed or deleted: embedded workers look again.
    ModulesChanged,
    /// A stand-alone action run ended: tell who waits.
    ActionRunEnded {
        /// The action run.
        action_run: ActionRunNumber,
    },
    /// A stream was created, grew or was deleted: tell those who wait there.
    StreamChanged {
        /// Where.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
    },
    /// Records may go out to a group's consumers that could not before: tell those who wait for them.
    RecordsReady {
        /// Where.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
        /// The group.
        group: GroupName,
    },
    /// A stream's hard limit removed records that a trigger still wanted (A32).
    RecordsLost {
        /// Where.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
        /// How many.
        count: u64,
    },
}

/// A task as a worker gets it (the manual's `TaskAssignment`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Proves the right to report (A4).
    pub token: TaskToken,
    /// Where.
    pub namespace: Namespace,
    /// The action.
    pub action: ActionName,
    /// The input: read it where the effect is carried out.
    pub input: PayloadRef,
    /// When the lease ends unless touched, in milliseconds.
    pub lease_expires_at_ms: u64,
    /// The lease's length, in milliseconds.
    pub timeout_ms: u64,
    /// When the action run was created, in milliseconds.
    pub created_at_ms: u64,
    /// The workflow run, for a step's task.
    pub run_id: Option<RunId>,
    /// The step, for a step's task.
    pub step: Option<StepName>,
    /// The action run's labels (A3).
    pub labels: BTreeMap<String, String>,
    /// How long after its acceptance the outcome may come by a report, in milliseconds; `None` when
    /// the task cannot be accepted (W38).
    pub report_timeout_ms: Option<u64>,
}
