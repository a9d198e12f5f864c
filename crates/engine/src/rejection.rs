//! Why a command was refused; the state is unchanged.

use crate::group::GroupRef;
use crate::ids::{
    ActionName, ActionRunNumber, ConsumerName, ExecutorName, IdempotencyKey, KvKey, Namespace,
    PlanName, RunId, StreamName, WorkerId, WorkflowName, WorkflowVersion,
};
use crate::rejection_code::{RejectionCode, RejectionKind};
use crate::tables::QuarantinedKind;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Why a command was refused. Each says what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// No such workflow.
    #[error("expected a workflow named \"{0}\", but there is none")]
    WorkflowNotFound(WorkflowName),
    /// No such version of the workflow (W5).
    #[error("expected workflow \"{workflow}\" to have version \"{version}\", but it has none such")]
    VersionNotFound {
        /// The workflow.
        workflow: WorkflowName,
        /// The version.
        version: WorkflowVersion,
    },
    /// The workflow is disabled (W42).
    #[error("expected workflow \"{0}\" to be enabled, but it is disabled")]
    WorkflowDisabled(WorkflowName),
    /// The definition names another namespace (W4).
    #[error(
        "expected the definition to belong to namespace \"{expected}\", but it says \"{found}\""
    )]
    NamespaceMismatch {
        /// Where it was sent.
        expected: Namespace,
        /// What it says.
        found: Namespace,
    },
    /// `idempotency: required` and no key (W20).
    #[error("expected an idempotency key, but the start of workflow \"{0}\" has none")]
    IdempotencyKeyMissing(WorkflowName),
    /// The caller's run id is taken (W20).
    #[error("expected the run id \"{0}\" to be free, but a run has it")]
    RunIdTaken(RunId),
    /// The caller's run id is of the engine's form (W20).
    #[error("expected a run id that does not begin with \"wfrun-\", but it is \"{0}\"")]
    RunIdReserved(RunId),
    /// The input's verdict was made for another revision (W4): check again.
    #[error(
        "expected the input to be checked against the definition that is now the latest, but it was checked against another"
    )]
    InputVerdictStale,
    /// The input breaks the workflow's schema (W4).
    #[error("expected the input to satisfy the workflow's schema, but {0}")]
    InputInvalid(String),
    /// No such run.
    #[error("expected a run \"{0}\", but there is none")]
    RunNotFound(RunId),
    /// The run has ended.
    #[error("expected run \"{run_id}\" to be open, but it is {status}")]
    RunEnded {
        /// The run.
        run_id: RunId,
        /// Its status.
        status: String,
    },
    /// The run is set aside (design rule 10).
    #[error("expected run \"{0}\" to be in service, but it is quarantined")]
    RunQuarantined(RunId),
    /// The stand-alone action run is set aside (design rule 10).
    #[error("expected action run \"{0}\" to be in service, but it is quarantined")]
    ActionRunQuarantined(ActionRunNumber),
    /// The run has as many signals as it may have.
    #[error("expected run \"{0}\" to have room for a signal, but it has as many as it may")]
    SignalsTooMany(RunId),
    /// The activation no longer waits for what the command brings.
    #[error("expected the step to wait for this, but it does not any more")]
    ActivationGone,
    /// No such action.
    #[error("expected an action named \"{0}\", but none is registered")]
    ActionNotFound(ActionName),
    /// The action is disabled.
    #[error("expected action \"{0}\" to be enabled, but it is disabled")]
    ActionDisabled(ActionName),
    /// No such action run.
    #[error("expected an action run \"{0}\", but there is none")]
    ActionRunNotFound(ActionRunNumber),
    /// The action run is over: a late or doubled report (A4).
    #[error("expected action run \"{action_run}\" to be open, but it is {status}")]
    ActionRunEnded {
        /// The action run.
        action_run: ActionRunNumber,
        /// Its status.
        status: String,
    },
    /// The token is not that of the current attempt (A4).
    #[error(
        "expected the token of the current attempt of \"{0}\", but the lease was given to another"
    )]
    LeaseLost(ActionRunNumber),
    /// The task was accepted: its lease has ended (W38).
    #[error("expected a leased task, but \"{0}\" was accepted and its outcome comes by a report")]
    TaskAccepted(ActionRunNumber),
    /// The task's outcome must come with its completion (W38).
    #[error("expected a task of an executor with `tracking: {{mode: async}}`, but \"{0}\" is none")]
    TaskNotTracked(ActionRunNumber),
    /// The token is not that of the attempt whose report is awaited (W38).
    #[error(
        "expected the token of the attempt of \"{0}\" whose report is awaited, but it is another"
    )]
    ReportTokenWrong(ActionRunNumber),
    /// No such plan.
    #[error("expected a plan \"{plan}\" in workflow \"{workflow}\", but there is none")]
    PlanNotFound {
        /// The workflow.
        workflow: WorkflowName,
        /// The plan.
        plan: PlanName,
    },
    /// No such executor.
    #[error("expected an executor \"{executor}\" in plan \"{plan}\", but there is none")]
    ExecutorNotFound {
        /// The plan.
        plan: PlanName,
        /// The executor.
        executor: ExecutorName,
    },
    /// An execution-level name as a handler's outcome (A4a).
    #[error("expected an outcome that actions may give, but \"{0}\" is the engine's own")]
    OutcomeReserved(String),
    /// No such worker: it must register again (A21).
    #[error("expected a registered worker \"{0}\", but it is unknown")]
    WorkerNotFound(WorkerId),
    /// The worker is registered by a newer process of the same id.
    #[error("expected the current incarnation of worker \"{0}\", but a newer one has registered")]
    WorkerReplaced(WorkerId),
    /// The namespace has as many workers as it may have (A20).
    #[error("expected room for a worker in namespace \"{0}\", but it has as many as it may")]
    WorkersTooMany(Namespace),
    /// The timer is not there: it has fired or is no longer wanted.
    #[error("expected the timer to be set, but it has fired or was taken back")]
    TimerGone,
    /// The timer is not due yet.
    #[error("expected the timer to be due, but it is not yet")]
    TimerNotDue,
    /// The entry has no room left for the work of an obligation (design rule 13): it comes again.
    #[error("expected room in the entry for this work, but the commands before it have used it up")]
    EntryFull,
    /// The schedule waits for another firing, or for none (W40).
    #[error(
        "expected the schedule of workflow \"{0}\" to wait for this firing, but it has moved on or stands still"
    )]
    FiringGone(WorkflowName),
    /// The firing is not due yet (W40).
    #[error("expected the firing to be due, but it is not yet")]
    FiringNotDue,
    /// The firing that is to follow lies before the one that it follows (W40).
    #[error("expected the next firing to lie after this one, but it does not")]
    FiringOutOfOrder,
    /// A key of the form that the engine shows for starts of its own (W20).
    #[error("expected an idempotency key that does not begin with \"flo:\", but it is \"{0}\"")]
    IdempotencyKeyReserved(IdempotencyKey),
    /// No such dead letter (A6): it was requeued, purged or dropped.
    #[error("expected a dead letter \"{0}\" of this action, but there is none")]
    DeadLetterNotFound(ActionRunNumber),
    /// The request id was used with other content (design rule 9).
    #[error("expected a new request id, but this one came before with other content")]
    RequestIdReused,
    /// A payload is over its bound (design rule 13).
    #[error("expected at most {bytes_max} bytes, but {noun} has {bytes}")]
    TooLarge {
        /// What is too large.
        noun: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// A bug: the turn panicked and was dropped (design rule 10).
    #[error("expected the command to be carried out, but the engine failed: {0}")]
    Internal(String),
    /// As many request ids are remembered as may be, and all are still needed (design rule 9).
    #[error(
        "expected room to remember the request's id, but the cluster has accepted as many in the last minutes as it may"
    )]
    RequestsTooMany,
    /// The key is there and should not be (A40).
    #[error("expected no key \"{key}\", but there is one of version {version}")]
    KeyExists {
        /// The key.
        key: KvKey,
        /// Its version.
        version: u64,
    },
    /// The key has another version (A40).
    #[error("expected key \"{key}\" to have version {expected}, but {}", version_in_words(.found))]
    KeyVersionMismatch {
        /// The key.
        key: KvKey,
        /// The version that the caller had read.
        expected: u64,
        /// The version that it has; `None` when it is absent.
        found: Option<u64>,
    },
    /// There are as many of something as there may be (design rule 13).
    #[error("expected at most {count_max} {noun}, but there would be more")]
    TooMany {
        /// What there are too many of, in the plural.
        noun: String,
        /// The bound.
        count_max: u64,
    },
    /// The namespace is not empty (A41).
    #[error("expected namespace \"{namespace}\" to be empty, but these are left: {left}")]
    NamespaceNotEmpty {
        /// The namespace.
        namespace: Namespace,
        /// Kinds of things, in the plural.
        left: String,
    },
    /// The default namespace was to be deleted (A41).
    #[error("expected a namespace that may be deleted, but \"default\" always stays")]
    NamespaceIsDefault,
    /// No such stream.
    #[error("expected a stream named \"{0}\", but there is none")]
    StreamNotFound(StreamName),
    /// The stream is there with other settings (A30).
    #[error(
        "expected no stream \"{stream}\" with other settings, but there is one: {}",
        .differences.join(", ")
    )]
    StreamExists {
        /// The stream.
        stream: StreamName,
        /// What is other than asked for, in words: at least one.
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
        /// How many the stream has.
        partitions: u32,
    },
    /// The call names no record.
    #[error("expected at least one record, but there is none")]
    RecordsMissing,
    /// No such group of the stream (A31).
    #[error("expected a group \"{}\" of stream \"{}\", but there is none", .0.group, .0.stream)]
    GroupNotFound(GroupRef),
    /// The group is there with other settings (A31).
    #[error(
        "expected no group \"{}\" of stream \"{}\" with other settings, but there is one: {}",
        .group.group, .group.stream, .differences.join(", ")
    )]
    GroupExists {
        /// The group.
        group: GroupRef,
        /// What is other than asked for, in words: at least one.
        differences: Vec<String>,
    },
    /// The consumer has not joined the group, or was silent for too long: it must join again (A31).
    #[error("expected a consumer \"{0}\" of the group, but it has not joined")]
    ConsumerNotFound(ConsumerName),
    /// None of the records is in flight in this take any more (A31).
    #[error("expected the records to be in flight, but their time is over or they are settled")]
    DeliveryGone,
    /// Others read with the group that a trigger names (W41).
    #[error(
        "expected the group \"{}\" of stream \"{}\" to be free for the trigger, but others read with it",
        .0.group, .0.stream
    )]
    GroupTaken(GroupRef),
    /// The group is a trigger's own (W41).
    #[error(
        "expected a group that no trigger reads with, but \"{}\" of stream \"{}\" is a workflow's",
        .0.group, .0.stream
    )]
    GroupOfTrigger(GroupRef),
    /// The trigger stands elsewhere, finds other records, or stands still (W41).
    #[error(
        "expected the trigger of workflow \"{0}\" to stand before these records, but it has moved on or stands still"
    )]
    TriggerMoved(WorkflowName),
    /// A batch that is not whole may still grow (W41).
    #[error("expected the last batch to be whole or to have waited for its time, but it may grow")]
    BatchNotDue,
    /// The worker was heard after it was taken for gone (A4).
    #[error("expected worker \"{0}\" to be gone, but it was heard again")]
    WorkerBack(WorkerId),
    /// A newer process has joined the group under the consumer's name (A31).
    #[error("expected the current incarnation of consumer \"{0}\", but a newer one has joined")]
    ConsumerReplaced(ConsumerName),
    /// The stream is set aside (design rule 10).
    #[error("expected stream \"{0}\" to be in service, but it is quarantined")]
    StreamQuarantined(StreamName),
    /// The group is set aside (design rule 10).
    #[error(
        "expected group \"{}\" of stream \"{}\" to be in service, but it is quarantined",
        .0.group, .0.stream
    )]
    GroupQuarantined(GroupRef),
    /// Nothing of this name is set aside (design rule 10).
    #[error("expected {} \"{name}\" to be quarantined, but it is not", .kind.name())]
    QuarantineNotFound {
        /// What it would be.
        kind: QuarantinedKind,
        /// What people call it, or its number.
        name: String,
    },
}

impl Rejection {
    pub(crate) fn too_many(noun: &str, count_max: usize) -> Self {
        let (noun, count_max) = (noun.to_owned(), count_max as u64);
        Self::TooMany { noun, count_max }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> RejectionCode {
        match self {
            Self::WorkflowNotFound(_) => RejectionCode::WorkflowNotFound,
            Self::VersionNotFound { .. } => RejectionCode::VersionNotFound,
            Self::WorkflowDisabled(_) => RejectionCode::WorkflowDisabled,
            Self::NamespaceMismatch { .. } => RejectionCode::NamespaceMismatch,
            Self::IdempotencyKeyMissing(_) => RejectionCode::IdempotencyKeyMissing,
            Self::RunIdTaken(_) => RejectionCode::RunIdTaken,
            Self::RunIdReserved(_) => RejectionCode::RunIdReserved,
            Self::InputVerdictStale => RejectionCode::InputVerdictStale,
            Self::InputInvalid(_) => RejectionCode::InputInvalid,
            Self::RunNotFound(_) => RejectionCode::RunNotFound,
            Self::RunEnded { .. } => RejectionCode::RunEnded,
            Self::RunQuarantined(_) => RejectionCode::RunQuarantined,
            Self::ActionRunQuarantined(_) => RejectionCode::ActionRunQuarantined,
            Self::SignalsTooMany(_) => RejectionCode::SignalsTooMany,
            Self::ActivationGone => RejectionCode::ActivationGone,
            Self::ActionNotFound(_) => RejectionCode::ActionNotFound,
            Self::ActionDisabled(_) => RejectionCode::ActionDisabled,
            Self::ActionRunNotFound(_) => RejectionCode::ActionRunNotFound,
            Self::ActionRunEnded { .. } => RejectionCode::ActionRunEnded,
            Self::LeaseLost(_) => RejectionCode::LeaseLost,
            Self::TaskAccepted(_) => RejectionCode::TaskAccepted,
            Self::TaskNotTracked(_) => RejectionCode::TaskNotTracked,
            Self::ReportTokenWrong(_) => RejectionCode::ReportTokenWrong,
            Self::PlanNotFound { .. } => RejectionCode::PlanNotFound,
            Self::ExecutorNotFound { .. } => RejectionCode::ExecutorNotFound,
            Self::OutcomeReserved(_) => RejectionCode::OutcomeReserved,
            Self::WorkerNotFound(_) => RejectionCode::WorkerNotFound,
            Self::WorkerReplaced(_) => RejectionCode::WorkerReplaced,
            Self::WorkersTooMany(_) => RejectionCode::WorkersTooMany,
            Self::TimerGone => RejectionCode::TimerGone,
            Self::TimerNotDue => RejectionCode::TimerNotDue,
            Self::EntryFull => RejectionCode::EntryFull,
            Self::FiringGone(_) => RejectionCode::FiringGone,
            Self::FiringNotDue => RejectionCode::FiringNotDue,
            Self::FiringOutOfOrder => RejectionCode::FiringOutOfOrder,
            Self::IdempotencyKeyReserved(_) => RejectionCode::IdempotencyKeyReserved,
            Self::DeadLetterNotFound(_) => RejectionCode::DeadLetterNotFound,
            Self::RequestIdReused => RejectionCode::RequestIdReused,
            Self::TooLarge { .. } => RejectionCode::TooLarge,
            Self::Internal(_) => RejectionCode::Internal,
            Self::RequestsTooMany => RejectionCode::RequestsTooMany,
            Self::KeyExists { .. } => RejectionCode::KeyExists,
            Self::KeyVersionMismatch { .. } => RejectionCode::KeyVersionMismatch,
            Self::TooMany { .. } => RejectionCode::TooMany,
            Self::NamespaceNotEmpty { .. } => RejectionCode::NamespaceNotEmpty,
            Self::NamespaceIsDefault => RejectionCode::NamespaceIsDefault,
            Self::StreamNotFound(_) => RejectionCode::StreamNotFound,
            Self::StreamExists { .. } => RejectionCode::StreamExists,
            Self::PartitionNotFound { .. } => RejectionCode::PartitionNotFound,
            Self::RecordsMissing => RejectionCode::RecordsMissing,
            Self::GroupNotFound(_) => RejectionCode::GroupNotFound,
            Self::GroupExists { .. } => RejectionCode::GroupExists,
            Self::ConsumerNotFound(_) => RejectionCode::ConsumerNotFound,
            Self::DeliveryGone => RejectionCode::DeliveryGone,
            Self::GroupTaken(_) => RejectionCode::GroupTaken,
            Self::GroupOfTrigger(_) => RejectionCode::GroupOfTrigger,
            Self::TriggerMoved(_) => RejectionCode::TriggerMoved,
            Self::BatchNotDue => RejectionCode::BatchNotDue,
            Self::WorkerBack(_) => RejectionCode::WorkerBack,
            Self::ConsumerReplaced(_) => RejectionCode::ConsumerReplaced,
            Self::StreamQuarantined(_) => RejectionCode::StreamQuarantined,
            Self::GroupQuarantined(_) => RejectionCode::GroupQuarantined,
            Self::QuarantineNotFound { .. } => RejectionCode::QuarantineNotFound,
        }
    }

    /// What kind of refusal it is.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        self.code().kind()
    }

    /// What the caller could do, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        self.code().hint()
    }
}

/// Refuses `noun` when it is over its bound (design rule 13).
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

/// What of a setting is other than asked for, in words; nothing when it is the same.
pub(crate) fn difference<T: PartialEq + Display>(
    name: &str,
    (found, asked): (T, T),
) -> Option<String> {
    (found != asked).then(|| format!("{name} is {found}, not {asked}"))
}

fn version_in_words(found: &Option<u64>) -> String {
    found.map_or_else(
        || "there is no such key".to_owned(),
        |version| format!("it has version {version}"),
    )
}
