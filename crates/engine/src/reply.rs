//! What the proposer of an accepted command gets.

use crate::ids::{ActionRunNumber, RunId, WorkflowName, WorkflowVersion};
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// Makes [`Reply`] and the type of each of its variants.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        /// The answer to an accepted command. Compact, since some are remembered (design rule 9).
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

/// A command was answered with the reply of another one: a bug.
#[derive(Debug, thiserror::Error)]
#[error("expected the reply to the command, but it is {0:?}")]
pub struct UnexpectedReply(pub Reply);

impl From<Infallible> for UnexpectedReply {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

replies! {
    /// The command is carried out; there is nothing else to say.
    Done {}
    /// Of [`CreateDefinition`](crate::command::Body::CreateDefinition).
    DefinitionCreated {
        /// The revision that now holds this content (W5).
        revision: u32,
        /// False when the content was already there.
        is_new: bool,
        /// Whether it is what starts use.
        is_latest: bool,
    }
    /// Of [`StartRun`](crate::command::Body::StartRun).
    RunStarted {
        /// The run.
        run_id: RunId,
        /// Its workflow.
        workflow: WorkflowName,
        /// Its version.
        version: WorkflowVersion,
        /// Its revision.
        revision: u32,
        /// True when the idempotency key named a run that was there (W20).
        is_existing: bool,
    }
    /// Of [`SignalRun`](crate::command::Body::SignalRun).
    SignalAccepted {
        /// True when a signal with this id was there (W19).
        is_repeated: bool,
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
        /// True when the idempotency key named one that was there.
        is_existing: bool,
    }
    /// Of [`TouchTask`](crate::command::Body::TouchTask).
    LeaseExtended {
        /// In milliseconds.
        expires_at_ms: u64,
    }
    /// Of [`AssignTasks`](crate::command::Body::AssignTasks).
    TasksAssigned {
        /// How many.
        count: u32,
        /// Whether something is left that one of these offers could take, had it a free slot; also
        /// where so many queues wait that not all were looked at. Without it only another offer, or
        /// another task, is a reason to ask again.
        is_fitting_left: bool,
    }
    /// Of registrations and heartbeats of workers.
    WorkerHeard {
        /// Whether the worker should stop taking tasks (A21).
        is_draining: bool,
    }
    /// Of [`AcceptTask`](crate::command::Body::AcceptTask).
    TaskAccepted {
        /// Until when a report may come, in milliseconds.
        deadline_ms: u64,
    }
    /// Of [`InvalidateCache`](crate::command::Body::InvalidateCache).
    CacheInvalidated {
        /// Plans that name the event.
        plans_count: u32,
    }
    /// Of [`FireSchedule`](crate::command::Body::FireSchedule).
    ScheduleFired {
        /// The run; `None` when `max_concurrent` open ones stood in its way (W40).
        run_id: Option<RunId>,
    }
    /// Of [`RequeueDeadLetters`](crate::command::Body::RequeueDeadLetters).
    DeadLettersRequeued {
        /// The new action runs, in the order of the letters.
        action_runs: Vec<ActionRunNumber>,
        /// Whether some of the chosen letters are left: send another command.
        has_more: bool,
    }
    /// Of [`PurgeDeadLetters`](crate::command::Body::PurgeDeadLetters).
    DeadLettersPurged {
        /// How many.
        count: u32,
        /// Whether some of the chosen letters are left: send another command.
        has_more: bool,
    }
    /// Of [`SetKey`](crate::command::Body::SetKey).
    KeySet {
        /// The value's version (A40).
        version: u64,
    }
    /// Of [`CreateNamespace`](crate::command::Body::CreateNamespace).
    NamespaceCreated {
        /// False when it was there.
        is_new: bool,
    }
    /// Of [`CreateStream`](crate::command::Body::CreateStream).
    StreamCreated {
        /// False when it was there.
        is_new: bool,
    }
    /// Of [`AppendRecords`](crate::command::Body::AppendRecords).
    RecordsAppended {
        /// The id of the first; those of the others follow it by [`RecordId::next`].
        first: RecordId,
    }
    /// Of [`CreateGroup`](crate::command::Body::CreateGroup).
    GroupCreated {
        /// False when it was there.
        is_new: bool,
    }
    /// Of [`JoinGroup`](crate::command::Body::JoinGroup).
    GroupJoined {
        /// How long the consumer has a record unless it touches it, in milliseconds.
        ack_timeout_ms: u64,
    }
    /// Of [`TakeRecords`](crate::command::Body::TakeRecords).
    RecordsTaken {
        /// How many; which ones, [`crate::view::delivery`] says.
        count: u32,
    }
    /// Of acknowledgements and returns of records.
    RecordsSettled {
        /// How many; the others were not in flight in the take any more.
        count: u32,
    }
    /// Of deletions of what callers name.
    Deleted {
        /// False when it was not there.
        is_found: bool,
    }
    /// Of [`FireTrigger`](crate::command::Body::FireTrigger).
    TriggerFired {
        /// Runs that it started.
        runs_count: u32,
        /// Records that went to the dead-letter stream.
        refused_count: u32,
    }
    /// Of [`DeleteNamespace`](crate::command::Body::DeleteNamespace).
    NamespaceDeleted {
        /// False when it was not there.
        is_found: bool,
        /// Whether some of what goes with it is left, and so is the namespace: send another command.
        has_more: bool,
    }
}
