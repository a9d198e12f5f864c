//! Action runs and their tasks (A2, A4).

use super::{PayloadRef, tables};
use crate::ids::{
    ActionName, ActionRunNumber, IdempotencyKey, Namespace, OutcomeName, RunNumber, WorkerId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By number. Live as long as their run; stand-alone ones until retention ends.
    15 ActionRuns(ActionRunNumber) -> ActionRunRecord, HOT while |action_run| action_run.status.is_open();
    /// Action runs by action. Live as long as the action run.
    16 ActionRunsByAction((Namespace, ActionName, ActionRunNumber)) -> ();
    /// Stand-alone action runs by the caller's key (A2). Live as long as the action run.
    17 ActionRunKeys((Namespace, ActionName, IdempotencyKey)) -> ActionRunNumber;
}

/// One run of an action; its current attempt is the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRunRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// The action.
    pub action: ActionName,
    /// For whom it runs.
    pub owner: ActionRunOwner,
    /// The action run before it of the same workflow run: the run names its last one, so that all go
    /// with it and none costs an index row.
    pub previous: Option<ActionRunNumber>,
    /// Where it stands.
    pub status: ActionRunStatus,
    /// The task's attempt, from 1.
    pub attempt: u32,
    /// Attempts in all: 1 + the action's `max_retries` (W13).
    pub attempts_max: u32,
    /// The action's, at the time of creation; in milliseconds.
    pub retry_delay_ms: u64,
    /// The lease's length, in milliseconds.
    pub timeout_ms: u64,
    /// Higher goes first (A2).
    pub priority: u8,
    /// Which workers may take it (A3).
    pub labels: BTreeMap<String, String>,
    /// The caller's key, so that it is forgotten with the action run.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The input.
    pub input: PayloadRef,
    /// The output, once there is one.
    pub output: Option<PayloadRef>,
    /// The outcome, once it ended.
    pub outcome: Option<OutcomeName>,
    /// Why the last attempt failed.
    pub error: Option<TaskError>,
    /// Who holds the task, while one does.
    pub lease: Option<Lease>,
    /// The report that is awaited, once the task was accepted (W38).
    pub report: Option<AwaitedReport>,
    /// In milliseconds.
    pub created_at_ms: u64,
    /// When the first attempt was taken, in milliseconds.
    pub started_at_ms: Option<u64>,
    /// In milliseconds.
    pub completed_at_ms: Option<u64>,
}

impl ActionRunRecord {
    /// Changes the status.
    ///
    /// # Panics
    /// When the status never becomes `next`.
    pub(crate) fn become_status(&mut self, next: ActionRunStatus) {
        let status = self.status;
        assert!(
            status.may_become(next),
            "expected a status that may follow {status:?}, but {next:?} may not"
        );
        self.status = next;
    }
}

/// For whom an action runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionRunOwner {
    /// A step of a workflow run.
    Step {
        /// The run.
        run: RunNumber,
        /// Its activation.
        activation: u32,
    },
    /// A caller (A2).
    Caller,
}

/// The statuses of an action run (A2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionRunStatus {
    /// Waits for a worker or for its delay.
    Pending,
    /// A worker holds the task.
    Running,
    /// An outcome came back.
    Completed,
    /// It failed for good.
    Failed,
    /// Its run or its caller gave it up.
    Cancelled,
    /// Its last lease expired.
    TimedOut,
}

impl ActionRunStatus {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// Whether an action run may go from this status to `next`: between pending and running, as leases come and go, and
    /// to one end.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Pending, Self::Running)
            | (Self::Running, Self::Pending)
            | (
                Self::Pending | Self::Running,
                Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut,
            ) => true,
            (Self::Pending, Self::Pending) | (Self::Running, Self::Running) => false,
            (Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut, _) => false,
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Running => true,
            Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut => false,
        }
    }
}

/// Why an attempt failed (W10a).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// The failure's code.
    pub code: String,
    /// The failure's message.
    pub message: String,
}

impl TaskError {
    /// Code and message; without a code that says no more than `outcome`.
    pub(crate) fn in_words(&self, outcome: &OutcomeName) -> String {
        let Self { code, message } = self;
        if code == outcome.as_str() {
            message.clone()
        } else {
            format!("{code}: {message}")
        }
    }
}

/// A time-bound right to a task (A4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who holds it.
    pub worker: WorkerId,
    /// What the worker's reports must carry.
    pub secret: u64,
    /// When it ends, in milliseconds.
    pub expires_at_ms: u64,
}

/// The right to report on a task that was accepted (W38).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedReport {
    /// What the report must carry: the secret of the lease that has ended.
    pub secret: u64,
    /// Until when it may come, in milliseconds.
    pub deadline_ms: u64,
}
