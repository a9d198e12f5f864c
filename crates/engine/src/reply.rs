//! Replies: what the proposer of an accepted command gets.

use crate::ids::{
    ActionRunNumber, OutcomeName, PlanRef, RunId, StepName, TokenId, WorkflowName, WorkflowVersion,
};
use crate::stream::RecordId;
use crate::tables::Phase;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// Defines [`Reply`] and a type for each of its variants.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        /// The reply to an accepted command. Compact, because some replies are remembered (design rule 9).
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Reply {
            $($(#[$doc])* $name($name),)*
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl From<$name> for Reply {
                fn from(reply: $name) -> Self {
                    Self::$name(reply)
                }
            }

            impl TryFrom<Reply> for $name {
                type Error = UnexpectedReply;

                fn try_from(reply: Reply) -> Result<Self, UnexpectedReply> {
                    match reply {
                        Reply::$name(reply) => Ok(reply),
                        other => Err(UnexpectedReply(other)),
                    }
                }
            }
        )*
    };
}

/// A command got the reply of another command: a bug.
#[derive(Debug, thiserror::Error)]
#[error("expected the reply to the command, but it is {0:?}")]
pub struct UnexpectedReply(pub Reply);

impl From<Infallible> for UnexpectedReply {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Why a start names a run that existed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExistingReason {
    /// The idempotency key names it (W20).
    IdempotencyKey,
    /// It holds a concurrency key whose limit is reached (W84).
    Concurrency,
}

replies! {
    /// The command was applied; the reply has no further content.
    Done {}
    /// Of [`CreateDefinition`](crate::command::Body::CreateDefinition).
    DefinitionCreated {
        /// The revision that holds this content (W5).
        revision: u32,
        /// False if the content already existed.
        is_new: bool,
        /// Whether this is the latest revision, which new runs use.
        is_latest: bool,
    }
    /// Of [`StartRun`](crate::command::Body::StartRun) and [`RetryRun`](crate::command::Body::RetryRun).
    RunStarted {
        /// The run.
        run_id: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// Its version.
        version: WorkflowVersion,
        /// Its revision.
        revision: u32,
        /// Why it is a run that existed already; `None` for a new one.
        existing: Option<ExistingReason>,
    }
    /// Of [`SignalRun`](crate::command::Body::SignalRun).
    SignalAccepted {
        /// True if a signal with this id already existed (W19).
        is_repeated: bool,
        /// True if no step waited for it: the run keeps it until one does. False if it is repeated.
        is_kept: bool,
    }
    /// Of [`CancelRun`](crate::command::Body::CancelRun).
    RunCancelled {
        /// What the run does before it ends; `None` if it does nothing more, or if that is not decided yet.
        phase: Option<Phase>,
        /// Whether the run has ended.
        has_ended: bool,
    }
    /// Of [`ResumeRun`](crate::command::Body::ResumeRun).
    RunResumed {
        /// The step of the run itself at which it continues; `None` if it ends or begins.
        step: Option<StepName>,
        /// Whether it waits for its concurrency keys first.
        is_queued: bool,
        /// The version with which it continues.
        version: WorkflowVersion,
        /// Its revision, 1, 2, 3 … within the version.
        revision: u32,
        /// Whether it had another revision before.
        is_revised: bool,
    }
    /// Of [`DecideApproval`](crate::command::Body::DecideApproval).
    ApprovalDecided {
        /// The step.
        step: StepName,
        /// The visit to it, from 1.
        visit: u32,
        /// What the step ended with; `None` if further approvals are needed.
        outcome: Option<OutcomeName>,
    }
    /// Of [`AddInfo`](crate::command::Body::AddInfo) and [`AddTaskInfo`](crate::command::Body::AddTaskInfo).
    InfoAdded {
        /// The number of the entry among those of its run, from 1.
        number: u32,
    }
    /// Of [`CompleteStep`](crate::command::Body::CompleteStep).
    StepReported {
        /// The step.
        step: StepName,
        /// The visit to it, from 1.
        visit: u32,
    }
    /// Of [`RegisterAction`](crate::command::Body::RegisterAction).
    ActionRegistered {
        /// The action's version (A1).
        version: u32,
        /// Whether this registration changed anything.
        is_changed: bool,
    }
    /// Of [`InvokeAction`](crate::command::Body::InvokeAction).
    ActionInvoked {
        /// The action run.
        action_run: ActionRunNumber,
        /// True if the idempotency key named an existing action run.
        is_existing: bool,
    }
    /// Of [`TouchTask`](crate::command::Body::TouchTask).
    LeaseExtended {
        /// When the lease now ends, in milliseconds.
        expires_at_ms: u64,
    }
    /// Of [`AssignTasks`](crate::command::Body::AssignTasks).
    TasksAssigned {
        /// The number of assigned tasks.
        count: u32,
        /// Whether tasks remain that one of these offers could take if it had a free slot. Also true if more queues
        /// wait than were read. If false, only another offer or another task is a reason to assign again.
        is_fitting_left: bool,
    }
    /// Of registrations and heartbeats of workers.
    HeartbeatRecorded {
        /// Whether the worker should stop taking tasks (A21).
        is_draining: bool,
    }
    /// Of [`AcceptTask`](crate::command::Body::AcceptTask).
    TaskAccepted {
        /// The deadline of the report, in milliseconds; `None` without one.
        deadline_at_ms: Option<u64>,
    }
    /// Of [`InvalidateCache`](crate::command::Body::InvalidateCache).
    CacheInvalidated {
        /// The number of plans that list the event, among those that this command looked at.
        plan_count: u32,
        /// The last plan that it looked at, if more follow: send another command.
        next: Option<PlanRef>,
    }
    /// Of [`FireSchedule`](crate::command::Body::FireSchedule).
    ScheduleFired {
        /// The run; `None` if the firing was skipped because `max_concurrent` runs are open (W40).
        run_id: Option<RunId>,
    }
    /// Of [`RequeueDeadLetters`](crate::command::Body::RequeueDeadLetters).
    DeadLettersRequeued {
        /// The new action runs, in the order of the dead letters.
        action_runs: Vec<ActionRunNumber>,
        /// Whether selected dead letters remain: send another command. If `action_runs` is empty, the open action runs
        /// of the action use all sets of labels that are allowed (A3), and some must end first.
        has_more: bool,
    }
    /// Of [`PurgeDeadLetters`](crate::command::Body::PurgeDeadLetters).
    DeadLettersPurged {
        /// The number of purged dead letters.
        count: u32,
        /// Whether selected dead letters remain: send another command.
        has_more: bool,
    }
    /// Of [`SetKey`](crate::command::Body::SetKey).
    KeySet {
        /// The value's version (A40).
        version: u64,
    }
    /// Of [`CreateNamespace`](crate::command::Body::CreateNamespace).
    NamespaceCreated {
        /// False if it already existed.
        is_new: bool,
    }
    /// Of [`CreateStream`](crate::command::Body::CreateStream).
    StreamCreated {
        /// False if it already existed.
        is_new: bool,
    }
    /// Of [`AppendRecords`](crate::command::Body::AppendRecords).
    RecordsAppended {
        /// The id of the first record; [`RecordId::next`] gives those of the others.
        first: RecordId,
    }
    /// Of [`CreateGroup`](crate::command::Body::CreateGroup).
    GroupCreated {
        /// False if it already existed.
        is_new: bool,
    }
    /// Of [`JoinGroup`](crate::command::Body::JoinGroup).
    GroupJoined {
        /// How long the consumer has to ack a record unless it touches it, in milliseconds.
        ack_timeout_ms: u64,
    }
    /// Of [`TakeRecords`](crate::command::Body::TakeRecords).
    RecordsTaken {
        /// The number of records; [`crate::view::delivery`] reads them.
        count: u32,
    }
    /// Of acks and nacks.
    DeliveriesEnded {
        /// The number of ended deliveries; the other records were no longer in flight in the take.
        count: u32,
    }
    /// Of deletions by name.
    Deleted {
        /// False if it did not exist.
        is_found: bool,
    }
    /// Of [`FireTrigger`](crate::command::Body::FireTrigger).
    TriggerFired {
        /// The number of runs that were started.
        run_count: u32,
        /// The number of records that went to the dead-letter stream.
        refused_count: u32,
        /// The number of records for which the trigger's condition is false.
        skipped_count: u32,
    }
    /// Of [`DeleteNamespace`](crate::command::Body::DeleteNamespace).
    NamespaceDeleted {
        /// False if it did not exist.
        is_found: bool,
        /// Whether part of the namespace's content, and so the namespace, remains: send another command.
        has_more: bool,
    }
    /// Of [`DeleteWorkflow`](crate::command::Body::DeleteWorkflow).
    WorkflowDeleted {
        /// False if it did not exist.
        is_found: bool,
        /// Whether rows of the workflow remain: send another command.
        has_more: bool,
    }
    /// Of [`CreateToken`](crate::command::Body::CreateToken).
    TokenCreated {
        /// Its id.
        id: TokenId,
        /// When it expires, in milliseconds; `None` if it does not.
        expires_at_ms: Option<u64>,
    }
    /// Of [`RevokeToken`](crate::command::Body::RevokeToken).
    TokenRevoked {
        /// False if it had ended before.
        is_new: bool,
    }
    /// Of [`BindSubject`](crate::command::Body::BindSubject).
    SubjectBound {
        /// False if the subject had other rights in the scope before.
        is_new: bool,
    }
    /// Of [`UnblockSubject`](crate::command::Body::UnblockSubject).
    SubjectUnblocked {
        /// False if it was not blocked.
        was_blocked: bool,
    }
    /// Of [`SetQuota`](crate::command::Body::SetQuota).
    QuotaSet {
        /// The version of the limits; 0 if there are none.
        version: u64,
    }
}
