//! Effects: hints to the outside world, which may be lost (design rule 6).

use crate::definition::Tracking;
use crate::ids::{
    ActionName, ActionRunNumber, GroupName, Namespace, RunId, RunNumber, StepName, StreamName,
    WorkerId,
};
use crate::tables::PayloadRef;
use crate::task::TaskToken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hint about work for the outside world. The leader's drivers act on it; run watchers listen on every node. If an
/// effect is lost, the tables still show the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// A task is ready, and the entry had no matching offer.
    WakeWorkers {
        /// The namespace.
        namespace: Namespace,
        /// The task's action.
        action: ActionName,
    },
    /// A task was assigned to an offer: deliver it.
    DeliverTask {
        /// The worker.
        worker: WorkerId,
        /// The offer's poll.
        poll: u64,
        /// The task with its input.
        assignment: Box<Assignment>,
    },
    /// A worker lost a task that it held, or should stop and answer: notify the worker.
    RevokeTask {
        /// The namespace.
        namespace: Namespace,
        /// The worker.
        worker: WorkerId,
        /// The task.
        token: TaskToken,
        /// Whether the worker still holds the task, and the step waits for its answer (W54).
        is_answer_awaited: bool,
    },
    /// A worker should stop taking tasks (A21).
    DrainWorker {
        /// The namespace.
        namespace: Namespace,
        /// The worker.
        worker: WorkerId,
    },
    /// A timer was set: look for due timers at this time.
    ArmTimer {
        /// When the timer is due, in milliseconds.
        due_ms: u64,
    },
    /// A schedule fires at this time (W40).
    ArmSchedule {
        /// When the schedule is due, in milliseconds.
        due_ms: u64,
    },
    /// A trigger has records to fire from this time on (W41).
    ArmTrigger {
        /// When the trigger is due, in milliseconds.
        due_ms: u64,
    },
    /// The retention of a run or an action run ends at this time (W4).
    ArmRetention {
        /// When the retention ends, in milliseconds.
        due_ms: u64,
    },
    /// A child's input (W4) or a step's output (W67) must be validated against its schema, or the locks of a run must be
    /// compiled (W85).
    CheckSchema {
        /// The run.
        run: RunNumber,
        /// The activation that waits for the verdict; 0 for the locks of the run.
        activation: u64,
    },
    /// A run's history grew or its status changed: wake its watchers.
    RunChanged {
        /// The namespace.
        namespace: Namespace,
        /// The run.
        run_id: RunId,
        /// Whether the run is still open.
        is_open: bool,
    },
    /// A WASM action was registered, changed or deleted: embedded workers reload the list.
    ModulesChanged,
    /// The access mode or a token changed: nodes check again whether the callers of long-lived calls may continue.
    AccessChanged,
    /// A stand-alone action run ended: wake the callers that wait for it.
    ActionRunEnded {
        /// The action run.
        action_run: ActionRunNumber,
    },
    /// A stream was created, appended to or deleted: wake its readers.
    StreamChanged {
        /// The namespace.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
    },
    /// Records have become deliverable to a group's consumers: wake those that wait.
    RecordsReady {
        /// The namespace.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
        /// The group.
        group: GroupName,
    },
    /// A stream's hard limit removed records that a trigger had not consumed (A32).
    RecordsLost {
        /// The namespace.
        namespace: Namespace,
        /// The stream.
        stream: StreamName,
        /// The number of lost records.
        count: u64,
    },
}

/// A task with its input, as sent to a worker (the manual's `TaskAssignment`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Proves the worker's right to report on the task (A4).
    pub token: TaskToken,
    /// The task's namespace.
    pub namespace: Namespace,
    /// The action.
    pub action: ActionName,
    /// A reference to the input, which is read when the effect is carried out.
    pub input: PayloadRef,
    /// When the lease ends unless it is extended, in milliseconds.
    pub lease_expires_at_ms: u64,
    /// The lease's length, in milliseconds.
    pub timeout_ms: u64,
    /// When the action run was created, in milliseconds.
    pub created_at_ms: u64,
    /// The workflow run, if the task belongs to a step.
    pub run_id: Option<RunId>,
    /// The step, if the task belongs to one.
    pub step: Option<StepName>,
    /// The action run's labels (A3).
    pub labels: BTreeMap<String, String>,
    /// Whether it is cancelled, and its step waits for the worker's answer (W54).
    pub is_cancelled: bool,
    /// Whether it can be accepted, so that its outcome arrives in a report (W38, W75).
    pub tracking: Tracking,
}
