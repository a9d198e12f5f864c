//! Rejections: why a command was refused. The state is unchanged.

use crate::access_rejection::AccessRejection;
use crate::ids::{
    ActionName, ActionRunNumber, ConsumerName, ExecutorName, GroupRef, IdempotencyKey, KvKey,
    Namespace, PlanName, RunId, StreamName, WorkerId, WorkflowName,
};
use crate::limits::REQUEST_RETRY_MS;
use crate::quota_rejection::QuotaRejection;
use crate::rejection_code::{RejectionCode, RejectionKind};
use crate::resume_rejection::ResumeRejection;
use crate::start_rejection::StartRejection;
use crate::tables::QuarantinedKind;
use crate::undeliverable::Undeliverable;
use crate::workflow_rejection::WorkflowRejection;
use serde::{Deserialize, Serialize};

/// Why a command was refused. Each text states what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The workflow does not exist.
    #[error("expected a workflow named \"{0}\", but it does not exist")]
    WorkflowNotFound(WorkflowName),
    /// The workflow is disabled (W42).
    #[error("expected workflow \"{0}\" to be enabled, but it is disabled")]
    WorkflowDisabled(WorkflowName),
    /// The definition names another namespace (W4).
    #[error(
        "expected the definition to belong to namespace \"{expected}\", but it names \"{found}\""
    )]
    NamespaceMismatch {
        /// The command's namespace.
        expected: Namespace,
        /// The definition's namespace.
        found: Namespace,
    },
    /// The workflow requires an idempotency key (`idempotency: required`), and the start gives no key (W20).
    #[error("expected an idempotency key for workflow \"{0}\", but the request gives no key")]
    IdempotencyKeyMissing(WorkflowName),
    /// The input was validated against another revision (W4); validate it again.
    #[error(
        "expected input that was validated against the latest revision, but the workflow has changed since"
    )]
    InputValidationStale,
    /// The input does not satisfy the workflow's schema (W4).
    #[error("expected the input to match the workflow's schema, but {0}")]
    InputInvalid(String),
    /// The versions, revisions or runs of the workflow, or a limit, prevent the command (W5).
    #[error(transparent)]
    Workflow(#[from] WorkflowRejection),
    /// The run id, a concurrency key or another run prevents the start.
    #[error(transparent)]
    Start(#[from] StartRejection),
    /// The run does not exist.
    #[error("expected a run \"{0}\", but it does not exist")]
    RunNotFound(RunId),
    /// The run has ended.
    #[error("expected run \"{run_id}\" to be open, but it is {status}")]
    RunEnded {
        /// The run.
        run_id: RunId,
        /// Its status.
        status: String,
    },
    /// The run cannot be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeRejection),
    /// A signal or a decision does not reach a step.
    #[error(transparent)]
    Undeliverable(#[from] Undeliverable),
    /// The run is quarantined (design rule 10).
    #[error("expected run \"{0}\" to be in service, but it is quarantined")]
    RunQuarantined(RunId),
    /// The stand-alone action run is quarantined (design rule 10).
    #[error("expected action run \"{0}\" to be in service, but it is quarantined")]
    ActionRunQuarantined(ActionRunNumber),
    /// The step no longer waits for this command.
    #[error("expected the step to wait for this command, but it no longer does")]
    ActivationStale,
    /// The action does not exist.
    #[error("expected an action named \"{0}\", but none is registered")]
    ActionNotFound(ActionName),
    /// The action is disabled.
    #[error("expected action \"{0}\" to be enabled, but it is disabled")]
    ActionDisabled(ActionName),
    /// The action run does not exist.
    #[error("expected an action run \"{0}\", but it does not exist")]
    ActionRunNotFound(ActionRunNumber),
    /// The action run has ended: the report is late or repeated (A4).
    #[error("expected action run \"{action_run}\" to be open, but it is {status}")]
    ActionRunEnded {
        /// The action run.
        action_run: ActionRunNumber,
        /// Its status.
        status: String,
    },
    /// The token does not belong to the current attempt (A4).
    #[error(
        "expected the token of a current lease of action run \"{0}\", but the lease has ended or was replaced"
    )]
    LeaseLost(ActionRunNumber),
    /// The task was accepted: its lease has ended (W38).
    #[error(
        "expected a leased task, but action run \"{0}\" was already accepted: its outcome arrives in a report"
    )]
    TaskAccepted(ActionRunNumber),
    /// The task's tracking is `sync`: its outcome must come with its completion (W38).
    #[error(
        "expected a task of a step or executor with `tracking: {{mode: async}}`, but action run \"{0}\" does not belong to one"
    )]
    TaskNotTracked(ActionRunNumber),
    /// The token does not belong to the attempt whose report is awaited (W38).
    #[error(
        "expected the token of the accepted attempt of action run \"{0}\", but the token is for another attempt or lacks its MAC"
    )]
    ReportTokenMismatch(ActionRunNumber),
    /// The plan does not exist.
    #[error("expected a plan \"{plan}\" in workflow \"{workflow}\", but it does not exist")]
    PlanNotFound {
        /// The workflow.
        workflow: WorkflowName,
        /// The plan.
        plan: PlanName,
    },
    /// The plan has no such executor.
    #[error("expected an executor \"{executor}\" in plan \"{plan}\", but it does not exist")]
    ExecutorNotFound {
        /// The plan.
        plan: PlanName,
        /// The executor.
        executor: ExecutorName,
    },
    /// A handler returned an outcome that only the engine may produce (A4a).
    #[error("expected an outcome that an action may give, but \"{0}\" is reserved for the engine")]
    OutcomeReserved(String),
    /// The worker does not exist; it must register again (A21).
    #[error("expected worker \"{0}\" to be registered, but it is not")]
    WorkerNotFound(WorkerId),
    /// A newer process has registered with the same worker id.
    #[error("expected the current incarnation of worker \"{0}\", but a newer one has registered")]
    WorkerReplaced(WorkerId),
    /// The worker id belongs to another identity (X25).
    #[error("expected worker id \"{0}\" to be free, but a worker of another identity has it")]
    WorkerIdTaken(WorkerId),
    /// The namespace has reached its limit of workers (A20).
    #[error(
        "expected capacity for another worker in namespace \"{0}\", but its workers have reached their limit"
    )]
    WorkerLimitExceeded(Namespace),
    /// The timer does not exist: it has fired or was cleared.
    #[error("expected the timer to be set, but it has fired or was cleared")]
    TimerStale,
    /// The timer is not due yet.
    #[error("expected the timer to be due, but it is not due yet")]
    TimerNotDue,
    /// The entry's budget is used up (design rule 13); the obligation is proposed again.
    #[error(
        "expected budget in the log entry for this command, but earlier commands have used it up"
    )]
    EntryFull,
    /// The schedule waits for another firing, or for no firing (W40).
    #[error(
        "expected the schedule of workflow \"{0}\" to wait for this firing, but it waits for another one or is inactive"
    )]
    FiringStale(WorkflowName),
    /// The firing is not due yet (W40).
    #[error("expected the firing to be due, but it is not due yet")]
    FiringNotDue,
    /// The proposed next firing is earlier than the firing that it follows (W40).
    #[error("expected the next firing to be later than this one, but it is not")]
    FiringOutOfOrder,
    /// The idempotency key has the form that the engine shows for the runs that it starts (W20).
    #[error("expected an idempotency key that does not begin with \"flo:\", but it is \"{0}\"")]
    IdempotencyKeyReserved(IdempotencyKey),
    /// The dead letter does not exist (A6): it was requeued, purged or dropped.
    #[error("expected a dead letter \"{0}\" of this action, but it does not exist")]
    DeadLetterNotFound(ActionRunNumber),
    /// The request id was already used for a different request (design rule 9).
    #[error("expected a new request id, but this one was already used for a different request")]
    RequestIdReused,
    /// A payload exceeds its limit (design rule 13).
    #[error("expected at most {bytes_max} bytes, but {noun} has {bytes}")]
    TooLarge {
        /// The payload that is too large.
        noun: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A bug: the turn panicked and was rolled back (design rule 10).
    #[error("expected to execute the command, but the engine failed: {0}")]
    Internal(String),
    /// The table of remembered request ids is full, none has expired, and the namespace has used up its share (design rule 9).
    #[error(
        "expected capacity to remember the request id, but the remembered request ids have reached their limit, and this namespace has used up its share"
    )]
    RequestIdLimitExceeded,
    /// The key already exists (A40).
    #[error("expected key \"{key}\" not to exist, but it has version {version}")]
    KeyExists {
        /// The key.
        key: KvKey,
        /// Its version.
        version: u64,
    },
    /// The key has another version than expected (A40).
    #[error("expected key \"{key}\" to have version {expected}, but {}", describe_version(.found))]
    KeyVersionMismatch {
        /// The key.
        key: KvKey,
        /// The version that the caller expected.
        expected: u64,
        /// The current version; `None` if the key does not exist.
        found: Option<u64>,
    },
    /// A limit on a number of items is reached (design rule 13).
    #[error("expected at most {count_max} {noun}, but there would be more")]
    LimitExceeded {
        /// The items, in the plural.
        noun: String,
        /// The limit.
        count_max: u64,
    },
    /// The namespace is not empty (A41).
    #[error("expected namespace \"{namespace}\" to be empty, but it still contains: {left}")]
    NamespaceNotEmpty {
        /// The namespace.
        namespace: Namespace,
        /// The kinds of items that it contains, in the plural.
        left: String,
    },
    /// The default namespace cannot be deleted (A41).
    #[error("expected a namespace other than \"default\", but \"default\" cannot be deleted")]
    NamespaceIsDefault,
    /// The stream does not exist.
    #[error("expected a stream named \"{0}\", but it does not exist")]
    StreamNotFound(StreamName),
    /// The stream already exists with different settings (A30).
    #[error(
        "expected stream \"{stream}\" to have the requested settings, but {}",
        .differences.join(", ")
    )]
    StreamExists {
        /// The stream.
        stream: StreamName,
        /// Descriptions of the differing settings: at least one.
        differences: Vec<String>,
    },
    /// The stream has no such partition (A30).
    #[error(
        "expected a partition below {partitions} of stream \"{stream}\", but it is {partition}"
    )]
    PartitionNotFound {
        /// The stream.
        stream: StreamName,
        /// The partition.
        partition: u32,
        /// The number of partitions of the stream.
        partitions: u32,
    },
    /// The request contains no record.
    #[error("expected at least one record, but the request contains no records")]
    RecordsMissing,
    /// The stream has no such group (A31).
    #[error("expected a group \"{}\" of stream \"{}\", but it does not exist", .0.group, .0.stream)]
    GroupNotFound(GroupRef),
    /// The group already exists with different settings (A31).
    #[error(
        "expected group \"{}\" of stream \"{}\" to have the requested settings, but {}",
        .group.group, .group.stream, .differences.join(", ")
    )]
    GroupExists {
        /// The group.
        group: GroupRef,
        /// Descriptions of the differing settings: at least one.
        differences: Vec<String>,
    },
    /// The consumer has not joined the group or has expired; it must join again (A31).
    #[error(
        "expected consumer \"{0}\" to have joined the group, but it has not joined or has expired"
    )]
    ConsumerNotFound(ConsumerName),
    /// None of the records is still in flight in this delivery (A31).
    #[error("expected the records to be in flight, but their delivery has ended")]
    DeliveryEnded,
    /// The group that a trigger names is in use by consumers or by another trigger (W41).
    #[error(
        "expected group \"{}\" of stream \"{}\" to be unused, but consumers or another trigger use it",
        .0.group, .0.stream
    )]
    GroupInUse(GroupRef),
    /// The group belongs to a trigger (W41).
    #[error(
        "expected a group for consumers, but group \"{}\" of stream \"{}\" belongs to a trigger",
        .0.group, .0.stream
    )]
    GroupOwnedByTrigger(GroupRef),
    /// The trigger is at another position, finds other records, or is inactive (W41).
    #[error(
        "expected the trigger of workflow \"{0}\" to be at these records, but it is at another position or is inactive"
    )]
    TriggerFiringStale(WorkflowName),
    /// The batch is not full and may still grow (W41).
    #[error("expected the last batch to be full or due, but it may still grow")]
    BatchNotDue,
    /// The worker has sent a heartbeat since it was found unhealthy (A4).
    #[error("expected worker \"{0}\" to be unhealthy, but it has sent a heartbeat")]
    WorkerHealthy(WorkerId),
    /// A newer process has joined the group under the consumer's name (A31).
    #[error("expected the current incarnation of consumer \"{0}\", but a newer one has joined")]
    ConsumerReplaced(ConsumerName),
    /// The stream is quarantined (design rule 10).
    #[error("expected stream \"{0}\" to be in service, but it is quarantined")]
    StreamQuarantined(StreamName),
    /// The group is quarantined (design rule 10).
    #[error(
        "expected group \"{}\" of stream \"{}\" to be in service, but it is quarantined",
        .0.group, .0.stream
    )]
    GroupQuarantined(GroupRef),
    /// The action run belongs to a run; only the run can be cancelled (A2).
    #[error("expected a stand-alone action run, but \"{action_run}\" belongs to run \"{run_id}\"")]
    ActionRunOfStep {
        /// The action run.
        action_run: ActionRunNumber,
        /// Its run.
        run_id: RunId,
    },
    /// No quarantined item has this name (design rule 10).
    #[error("expected {} \"{name}\" to be quarantined, but it is not", .kind.name())]
    QuarantineNotFound {
        /// The kind of item.
        kind: QuarantinedKind,
        /// The item's published name or its number.
        name: String,
    },
    /// The request id was made so long ago that an earlier copy of the request may have been applied and forgotten
    /// (design rule 9).
    #[error(
        "expected a request id of the last {} s, but it was made {} s before the cluster's time",
        REQUEST_RETRY_MS / 1_000,
        .age_ms / 1_000
    )]
    RequestTooOld {
        /// The age of the id, in milliseconds.
        age_ms: u64,
        /// The cluster's time, in milliseconds.
        now_ms: u64,
    },
    /// The caller shows no valid credential, or has no right to the command.
    #[error(transparent)]
    Access(#[from] AccessRejection),
    /// The value of a setting of the cluster is out of its range (A42).
    #[error("expected `{name}` to be from {min} to {max}, but it is {value}")]
    SettingOutOfRange {
        /// The setting's published name.
        name: String,
        /// The value.
        value: u64,
        /// The lowest valid value.
        min: u64,
        /// The highest valid value.
        max: u64,
    },
    /// A quota prevents the command, or was not changed.
    #[error(transparent)]
    Quota(#[from] QuotaRejection),
}

impl Rejection {
    pub(crate) fn too_many(noun: &str, count_max: usize) -> Self {
        let (noun, count_max) = (noun.to_owned(), count_max as u64);
        Self::LimitExceeded { noun, count_max }
    }

    /// The stable code.
    #[must_use]
    #[expect(
        clippy::too_many_lines,
        reason = "a table with one line for each variant"
    )]
    pub fn code(&self) -> RejectionCode {
        match self {
            Self::WorkflowNotFound(_) => RejectionCode::WorkflowNotFound,
            Self::WorkflowDisabled(_) => RejectionCode::WorkflowDisabled,
            Self::NamespaceMismatch { .. } => RejectionCode::NamespaceMismatch,
            Self::Workflow(rejection) => rejection.code(),
            Self::Start(rejection) => rejection.code(),
            Self::Resume(rejection) => rejection.code(),
            Self::Access(rejection) => rejection.code(),
            Self::Quota(rejection) => rejection.code(),
            Self::IdempotencyKeyMissing(_) => RejectionCode::IdempotencyKeyMissing,
            Self::InputValidationStale => RejectionCode::InputValidationStale,
            Self::InputInvalid(_) => RejectionCode::InputInvalid,
            Self::RunNotFound(_) => RejectionCode::RunNotFound,
            Self::RunEnded { .. } => RejectionCode::RunEnded,
            Self::Undeliverable(reason) => reason.code(),
            Self::RunQuarantined(_) => RejectionCode::RunQuarantined,
            Self::ActionRunQuarantined(_) => RejectionCode::ActionRunQuarantined,
            Self::ActivationStale => RejectionCode::ActivationStale,
            Self::ActionNotFound(_) => RejectionCode::ActionNotFound,
            Self::ActionDisabled(_) => RejectionCode::ActionDisabled,
            Self::ActionRunNotFound(_) => RejectionCode::ActionRunNotFound,
            Self::ActionRunEnded { .. } => RejectionCode::ActionRunEnded,
            Self::LeaseLost(_) => RejectionCode::LeaseLost,
            Self::TaskAccepted(_) => RejectionCode::TaskAlreadyAccepted,
            Self::TaskNotTracked(_) => RejectionCode::TaskNotTracked,
            Self::ReportTokenMismatch(_) => RejectionCode::ReportTokenMismatch,
            Self::PlanNotFound { .. } => RejectionCode::PlanNotFound,
            Self::ExecutorNotFound { .. } => RejectionCode::ExecutorNotFound,
            Self::OutcomeReserved(_) => RejectionCode::OutcomeReserved,
            Self::WorkerNotFound(_) => RejectionCode::WorkerNotFound,
            Self::WorkerReplaced(_) => RejectionCode::WorkerReplaced,
            Self::WorkerIdTaken(_) => RejectionCode::WorkerIdTaken,
            Self::WorkerLimitExceeded(_) => RejectionCode::WorkerLimitExceeded,
            Self::TimerStale => RejectionCode::TimerStale,
            Self::TimerNotDue => RejectionCode::TimerNotDue,
            Self::EntryFull => RejectionCode::EntryFull,
            Self::FiringStale(_) => RejectionCode::FiringStale,
            Self::FiringNotDue => RejectionCode::FiringNotDue,
            Self::FiringOutOfOrder => RejectionCode::FiringOutOfOrder,
            Self::IdempotencyKeyReserved(_) => RejectionCode::IdempotencyKeyReserved,
            Self::DeadLetterNotFound(_) => RejectionCode::DeadLetterNotFound,
            Self::RequestIdReused => RejectionCode::RequestIdReused,
            Self::TooLarge { .. } => RejectionCode::TooLarge,
            Self::Internal(_) => RejectionCode::Internal,
            Self::RequestIdLimitExceeded => RejectionCode::RequestIdLimitExceeded,
            Self::RequestTooOld { .. } => RejectionCode::RequestTooOld,
            Self::KeyExists { .. } => RejectionCode::KeyExists,
            Self::KeyVersionMismatch { .. } => RejectionCode::KeyVersionMismatch,
            Self::LimitExceeded { .. } => RejectionCode::LimitExceeded,
            Self::NamespaceNotEmpty { .. } => RejectionCode::NamespaceNotEmpty,
            Self::NamespaceIsDefault => RejectionCode::NamespaceIsDefault,
            Self::StreamNotFound(_) => RejectionCode::StreamNotFound,
            Self::StreamExists { .. } => RejectionCode::StreamExists,
            Self::PartitionNotFound { .. } => RejectionCode::PartitionNotFound,
            Self::RecordsMissing => RejectionCode::RecordsMissing,
            Self::GroupNotFound(_) => RejectionCode::GroupNotFound,
            Self::GroupExists { .. } => RejectionCode::GroupExists,
            Self::ConsumerNotFound(_) => RejectionCode::ConsumerNotFound,
            Self::DeliveryEnded => RejectionCode::DeliveryEnded,
            Self::GroupInUse(_) => RejectionCode::GroupInUse,
            Self::GroupOwnedByTrigger(_) => RejectionCode::GroupOwnedByTrigger,
            Self::TriggerFiringStale(_) => RejectionCode::TriggerFiringStale,
            Self::BatchNotDue => RejectionCode::BatchNotDue,
            Self::WorkerHealthy(_) => RejectionCode::WorkerHealthy,
            Self::ConsumerReplaced(_) => RejectionCode::ConsumerReplaced,
            Self::StreamQuarantined(_) => RejectionCode::StreamQuarantined,
            Self::GroupQuarantined(_) => RejectionCode::GroupQuarantined,
            Self::ActionRunOfStep { .. } => RejectionCode::ActionRunOfStep,
            Self::QuarantineNotFound { .. } => RejectionCode::QuarantineNotFound,
            Self::SettingOutOfRange { .. } => RejectionCode::SettingOutOfRange,
        }
    }

    /// The kind of rejection.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        self.code().kind()
    }

    /// Whether a concurrency limit, a target or a lock does not allow the start of a run (W84, W85).
    pub(crate) fn is_start_conflict(&self) -> bool {
        matches!(self, Self::Start(rejection) if rejection.is_conflict())
    }

    /// Whether the start of a run would be accepted once other runs have ended (W84, W85).
    pub(crate) fn is_temporary_conflict(&self) -> bool {
        matches!(self, Self::Start(rejection) if rejection.is_temporary())
    }

    /// Whether a quota refuses the command.
    #[must_use]
    pub fn is_over_quota(&self) -> bool {
        matches!(self, Self::Quota(QuotaRejection::Exceeded(_)))
    }

    /// What the caller can do, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        self.code().hint()
    }
}

/// Rejects `noun` if it exceeds its limit (design rule 13).
pub(crate) fn check_bytes(noun: &str, bytes: usize, bytes_max: usize) -> Result<(), Rejection> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Rejection::TooLarge {
        noun: noun.to_owned(),
        bytes: bytes as u64,
        bytes_max: bytes_max as u64,
    })
}

fn describe_version(found: &Option<u64>) -> String {
    found.map_or_else(
        || "it does not exist".to_owned(),
        |version| format!("it has version {version}"),
    )
}
