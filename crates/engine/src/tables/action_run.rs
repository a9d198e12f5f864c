//! Action runs and their tasks (A2, A4).

use super::{ActionRunBlock, ActionRunSet, LEASE_SUSPENDED_MS, LeasePlace, PayloadRef, tables};
use crate::ids::{
    ActionName, ActionRunNumber, IdempotencyKey, Namespace, OutcomeName, RunNumber, WorkerId,
    WorkerNumber,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By number. Live as long as their run, unless its history is trimmed and no longer refers to them; stand-alone
    /// ones until retention ends.
    15 ActionRuns(ActionRunNumber) -> ActionRunRecord, HOT while |action_run| action_run.status.is_open();
    /// Action runs by action, in blocks. Live as long as the action runs.
    16 ActionRunsByAction((Namespace, ActionName, ActionRunBlock)) -> ActionRunSet, HOT;
    /// Action runs of steps by their workflow run, in order of creation, with the event of their creation: those of the
    /// trimmed part of the run's history and of the head before it. The others are found in the history. Live as long as
    /// the action run.
    65 ActionRunsByRun((RunNumber, ActionRunNumber)) -> u64;
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
    /// The owner: a step or a caller.
    pub owner: ActionRunOwner,
    /// The event of its workflow run that ended it, or until then the first that names it; 0 without a workflow run.
    pub last_event: u64,
    /// Its current status.
    pub status: ActionRunStatus,
    /// The task's attempt, from 1.
    pub attempt: u32,
    /// Attempts in all: 1 + the action's `max_retries` (W13).
    pub attempts_max: u32,
    /// The action's, at the time of creation; in milliseconds.
    pub retry_delay_ms: u64,
    /// The lease's length, in milliseconds.
    pub timeout_ms: u64,
    /// Whether `timeout_ms` is the heartbeat timeout of the step instead of the action's timeout (W70).
    pub has_step_heartbeat: bool,
    /// The maximum wait for a worker, in milliseconds (A2, W70); `None` without a limit.
    pub queue_timeout_ms: Option<u64>,
    /// Higher goes first (A2).
    pub priority: u8,
    /// The labels that a worker must have to take it (A3).
    pub labels: BTreeMap<String, String>,
    /// The caller's idempotency key, which is deleted with the action run.
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
    /// Whether it is cancelled, and its step waits until the worker has answered or lost the lease (W54).
    pub is_cancelling: bool,
    /// The report that is awaited, once the task was accepted (W38).
    pub report: Option<AwaitedReport>,
    /// The deadline for a worker to take it, while it is pending and has one; in milliseconds.
    pub wait_ends_at_ms: Option<u64>,
    /// In milliseconds.
    pub created_at_ms: u64,
    /// When the first attempt was taken, in milliseconds.
    pub started_at_ms: Option<u64>,
    /// In milliseconds.
    pub completed_at_ms: Option<u64>,
}

impl ActionRunRecord {
    /// What reports on the current attempt must show; `None` if no worker holds or has accepted the task.
    #[must_use]
    pub fn report_proof(&self) -> Option<ReportProof> {
        let leased = self.lease.as_ref().map(|lease| lease.proof);
        self.report.map(|report| report.proof).or(leased)
    }

    /// Changes the status.
    ///
    /// # Panics
    /// If the transition to `next` is not allowed.
    pub(crate) fn become_status(&mut self, next: ActionRunStatus) {
        let status = self.status;
        assert!(
            status.may_become(next),
            "expected a status that may follow {status:?}, but {next:?} may not"
        );
        self.status = next;
    }
}

/// The owner of an action run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionRunOwner {
    /// A step of a workflow run.
    Step {
        /// The run.
        run: RunNumber,
        /// Its activation.
        activation: u64,
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
    /// It failed permanently.
    Failed,
    /// It was cancelled, with its run or by a caller.
    Cancelled,
    /// Its last lease expired, or no worker took it in time.
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

    /// Whether the transition to `next` is allowed: between pending and running, as leases begin and end, and to
    /// exactly one final status.
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
    /// The code and message; the code is omitted if it only repeats `outcome`.
    pub(crate) fn describe(&self, outcome: &OutcomeName) -> String {
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
    /// The worker that holds the task.
    pub worker: WorkerId,
    /// The number under which the lease is listed: the worker's at the time of the assignment.
    pub holder: WorkerNumber,
    /// What the worker's reports must show.
    pub proof: ReportProof,
    /// When it ends, in milliseconds; [`LEASE_SUSPENDED_MS`] while it is suspended.
    pub expires_at_ms: u64,
}

impl Lease {
    /// Whether its end has come while its task was quarantined: it expires once the task is released.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.expires_at_ms == LEASE_SUSPENDED_MS
    }

    /// When it ends, in milliseconds; `None` while it is suspended.
    #[must_use]
    pub fn ends_at_ms(&self) -> Option<u64> {
        (!self.is_suspended()).then_some(self.expires_at_ms)
    }

    /// Its place among the leases of its worker.
    #[must_use]
    pub fn place(&self, task: ActionRunNumber) -> LeasePlace {
        LeasePlace {
            expires_at_ms: self.expires_at_ms,
            task,
        }
    }
}

/// What a report on an attempt must show (A4, X31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportProof {
    /// The secret of the attempt's token.
    pub secret: u64,
    /// Whether a caller that shows nothing but the token must show it with a MAC: the cluster was closed when a worker took
    /// the task.
    pub requires_mac: bool,
}

/// The right to report on an accepted task (W38).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedReport {
    /// What the report must show: that of the ended lease.
    pub proof: ReportProof,
    /// The deadline of the report, in milliseconds; `None` without one.
    pub deadline_at_ms: Option<u64>,
}
