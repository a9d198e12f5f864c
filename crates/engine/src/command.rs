//! Commands: requests to change state, and the table of all that is known of each before it is applied.

use crate::action::{DeleteAction, InvokeAction, RegisterAction, SetActionEnabled};
use crate::codec::{self, DecodeError};
use crate::dead_letter::{PurgeDeadLetters, RequeueDeadLetters};
use crate::group::{
    AckRecords, CreateGroup, DeleteGroup, JoinGroup, LeaveGroup, NackRecords, TakeRecords,
    TouchRecords,
};
use crate::ids::{ActionRunNumber, Namespace, RunId, RunNumber, StreamNumber, WorkerId};
use crate::kv::{DeleteKey, SetKey, SweepKeys};
use crate::leadership::BeginTerm;
use crate::namespace::{CreateNamespace, DeleteNamespace};
use crate::plan::{InvalidateCache, ResetPlan};
use crate::quarantine::RetryQuarantined;
use crate::reply::{self, Reply, UnexpectedReply};
use crate::request::{RequestId, SweepRequests};
use crate::retention::SweepRuns;
use crate::run::{CancelRun, DecideChildInput, SignalRun, StartRun};
use crate::schedule::{FireSchedule, PlanSchedule};
use crate::stream::{AppendRecords, CreateStream, DeleteStream, TrimStream};
use crate::tables::{DefinitionNumber, Quarantined};
use crate::task::{AcceptTask, AssignTasks, CompleteTask, FailTask, ReportTask, TouchTask};
use crate::timer::FireTimer;
use crate::trigger::FireTrigger;
use crate::turn::{Outcome, Turn};
use crate::version::ENGINE_VERSION_FIRST;
use crate::worker::{
    DeregisterWorker, DrainWorker, HeartbeatWorker, RegisterWorker, ReleaseWorker,
};
use crate::workflow::{CreateDefinition, SetWorkflowEnabled};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A request to change state; it ends in a reply or a rejection, never in silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command<B = Body> {
    /// Makes a retry safe where the command has no natural key (design rule 9).
    pub request_id: Option<RequestId>,
    /// Where it acts.
    pub namespace: Namespace,
    /// What it asks for.
    pub body: B,
}

/// How a command is admitted when the queue is long (design rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// New work: refused first.
    Intake,
    /// What lets open work end: has reserved room.
    Progress,
}

/// Whose command it is: what a panic quarantines (design rule 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A run by its id.
    Run(RunId),
    /// A run by its number.
    RunNumber(RunNumber),
    /// The run that an action run belongs to, or the action run itself.
    ActionRun(ActionRunNumber),
    /// A timer.
    Timer(crate::tables::TimerKey),
    /// A worker.
    Worker(WorkerId),
    /// The schedule of a definition.
    Schedule(DefinitionNumber),
    /// The trigger of a definition.
    Trigger(DefinitionNumber),
    /// A stream.
    Stream(StreamNumber),
    /// What was set aside before.
    Quarantined(Quarantined),
    /// Nothing that could be set aside.
    Nothing,
}

impl<B> Command<B> {
    /// A command without a request id.
    #[must_use]
    pub fn new(namespace: Namespace, body: B) -> Self {
        Self {
            request_id: None,
            namespace,
            body,
        }
    }
}

impl<B: Operation> Command<B> {
    /// The same, with a body of any kind.
    #[must_use]
    pub fn untyped(self) -> Command {
        Command {
            request_id: self.request_id,
            namespace: self.namespace,
            body: self.body.into(),
        }
    }
}

impl Command {
    /// The form in which a command travels to the leader.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads the travelling form.
    ///
    /// # Errors
    /// [`DecodeError`] for other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl Body {
    /// The body as its caller sent it: without the verdict that a node adds before proposal, and without
    /// the trace that the caller is in. Both may differ when the same request is sent again.
    pub(crate) fn as_asked(&self) -> Cow<'_, Self> {
        match self {
            Self::StartRun(start) if start.input_checked_for.is_some() || start.trace.is_some() => {
                Cow::Owned(Self::StartRun(StartRun {
                    input_checked_for: None,
                    trace: None,
                    ..start.clone()
                }))
            }
            body => Cow::Borrowed(body),
        }
    }
}

/// A command's body, typed by the reply that it gets.
pub trait Operation: Into<Body> {
    /// What its proposer gets once it is accepted.
    type Reply: TryFrom<Reply, Error: Into<UnexpectedReply>>;
}

/// A body of any kind may get any reply.
impl Operation for Body {
    type Reply = Reply;
}

/// Makes [`Body`], [`CommandKind`] and all that is known of a command by its kind, a row a command: its variant and
/// type, its published spelling, how it is admitted, perhaps that it meets an obligation, its reply, perhaps what a panic in it quarantines (`of`), and
/// perhaps the engine version that what it carries needs (`since`).
macro_rules! commands {
    (@obligation) => {
        true
    };
    ($(
        $(#[$doc:meta])*
        $name:ident($type:ty) $spelling:literal $admission:ident $($obligation:ident)? -> $reply:ident
            $(, of |$subject_of:ident| $subject:expr)?
            $(, since |$since_of:ident| $since:expr)?;
    )*) => {
        /// What a command asks for. Variants are appended, never reordered (design rule 12).
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Body {
            $($(#[$doc])* $name($type),)*
        }

        /// What a [`Command`] asks for, without what it carries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CommandKind {
            $(#[doc = concat!("`", $spelling, "`.")] $name,)*
        }

        impl CommandKind {
            /// All of them, in the order of their numbers as `usize`.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published spelling, in snake case.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $spelling,)*
                }
            }

            /// Whether it meets an obligation: a driver proposes it, and again when it is refused (design rule 6).
            #[must_use]
            pub fn is_obligation(self) -> bool {
                match self {
                    $(Self::$name => false $(|| commands!(@$obligation))?,)*
                }
            }
        }

        $(
            impl From<$type> for Body {
                fn from(body: $type) -> Self {
                    Self::$name(body)
                }
            }

            impl Operation for $type {
                type Reply = reply::$reply;
            }
        )*

        impl Body {
            /// Its kind.
            #[must_use]
            pub fn kind(&self) -> CommandKind {
                match self {
                    $(Self::$name(_) => CommandKind::$name,)*
                }
            }

            /// How the command is admitted.
            #[must_use]
            pub fn admission(&self) -> Admission {
                match self {
                    $(Self::$name(_) => Admission::$admission,)*
                }
            }

            /// What a panic in this command quarantines.
            #[must_use]
            pub fn subject(&self) -> Subject {
                $($(if let Self::$name($subject_of) = self {
                    return $subject;
                })?)*
                Subject::Nothing
            }

            /// The engine version that the command and what it carries need: a cluster that has agreed on an older
            /// one must not propose it (design rule 12).
            #[must_use]
            pub fn since(&self) -> u32 {
                $($(if let Self::$name($since_of) = self {
                    return $since;
                })?)*
                ENGINE_VERSION_FIRST
            }

            /// Carries the command out.
            pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
                match self {
                    $(Self::$name(command) => command.apply(turn, namespace).map(Reply::from),)*
                }
            }
        }
    };
}

commands! {
    /// Stores a workflow definition (W5).
    CreateDefinition(Box<CreateDefinition>) "create_definition" Intake -> DefinitionCreated;
    /// Enables or disables a workflow (W42).
    SetWorkflowEnabled(SetWorkflowEnabled) "set_workflow_enabled" Progress -> Done;
    /// Starts a run (W20).
    StartRun(StartRun) "start_run" Intake -> RunStarted;
    /// Delivers a signal (W19).
    SignalRun(SignalRun) "signal_run" Progress -> SignalAccepted,
        of |signal| Subject::Run(signal.run_id.clone());
    /// Cancels a run (W18).
    CancelRun(CancelRun) "cancel_run" Progress -> Done,
        of |cancel| Subject::Run(cancel.run_id.clone());
    /// Answers whether a child's input satisfies its schema (W4).
    DecideChildInput(DecideChildInput) "decide_child_input" Progress -> Done,
        of |decision| Subject::RunNumber(decision.parent);
    /// Registers an action (A1).
    RegisterAction(Box<RegisterAction>) "register_action" Intake -> ActionRegistered;
    /// Deletes an action (A1).
    DeleteAction(DeleteAction) "delete_action" Progress -> Done;
    /// Enables or disables an action (A1).
    SetActionEnabled(SetActionEnabled) "set_action_enabled" Progress -> Done;
    /// Starts an action run outside any workflow (A2).
    InvokeAction(InvokeAction) "invoke_action" Intake -> ActionInvoked;
    /// Ends a task with an outcome (A4).
    CompleteTask(CompleteTask) "complete_task" Progress -> Done,
        of |complete| Subject::ActionRun(complete.token.action_run);
    /// Ends a task with an error (A5).
    FailTask(FailTask) "fail_task" Progress -> Done,
        of |fail| Subject::ActionRun(fail.token.action_run);
    /// Extends a task's lease (A4).
    TouchTask(TouchTask) "touch_task" Progress -> LeaseExtended,
        of |touch| Subject::ActionRun(touch.token.action_run);
    /// Gives ready tasks to the entry's offers (design rule 3).
    AssignTasks(AssignTasks) "assign_tasks" Progress -> TasksAssigned;
    /// Registers a worker (A20).
    RegisterWorker(Box<RegisterWorker>) "register_worker" Progress -> WorkerHeard;
    /// Keeps a worker healthy (A20).
    HeartbeatWorker(HeartbeatWorker) "heartbeat_worker" Progress -> WorkerHeard,
        of |heartbeat| Subject::Worker(heartbeat.worker_id.clone());
    /// Begins a worker's drain (A21).
    DrainWorker(DrainWorker) "drain_worker" Progress -> Done;
    /// Removes a worker (A20).
    DeregisterWorker(DeregisterWorker) "deregister_worker" Progress -> Done;
    /// Frees the leases of a worker that is known to be gone (A4).
    ReleaseWorker(ReleaseWorker) "release_worker" Progress -> Done,
        of |release| Subject::Worker(release.worker_id.clone());
    /// Fires one due timer (design rule 6).
    FireTimer(FireTimer) "fire_timer" Progress obligation -> Done,
        of |fire| Subject::Timer(fire.timer);
    /// Marks the beginning of a leader's term (A4).
    BeginTerm(BeginTerm) "begin_term" Progress -> Done;
    /// Forgets old request ids (design rule 9).
    SweepRequests(SweepRequests) "sweep_requests" Progress obligation -> Done;
    /// Ends a task's lease; its outcome comes by a report (W38).
    AcceptTask(AcceptTask) "accept_task" Progress -> TaskAccepted,
        of |accept| Subject::ActionRun(accept.token.action_run);
    /// Ends a task with an outcome that comes by a report (W38).
    ReportTask(ReportTask) "report_task" Progress -> Done,
        of |report| Subject::ActionRun(report.token.action_run);
    /// Drops cached results of plans (W37).
    InvalidateCache(InvalidateCache) "invalidate_cache" Progress -> CacheInvalidated;
    /// Gives a plan's executors a fresh chance (W31).
    ResetPlan(ResetPlan) "reset_plan" Progress -> Done;
    /// Says when a schedule fires next (W40).
    PlanSchedule(PlanSchedule) "plan_schedule" Progress -> Done,
        of |plan| Subject::Schedule(plan.definition);
    /// Fires one firing of a schedule (W40).
    FireSchedule(FireSchedule) "fire_schedule" Progress obligation -> ScheduleFired,
        of |fire| Subject::Schedule(fire.definition);
    /// Forgets runs that were kept for long enough (W4).
    SweepRuns(SweepRuns) "sweep_runs" Progress obligation -> Done;
    /// Runs dead letters again (A6).
    RequeueDeadLetters(RequeueDeadLetters) "requeue_dead_letters" Intake -> DeadLettersRequeued;
    /// Throws dead letters away (A6).
    PurgeDeadLetters(PurgeDeadLetters) "purge_dead_letters" Progress -> DeadLettersPurged;
    /// Writes a value (A40).
    SetKey(SetKey) "set_key" Intake -> KeySet;
    /// Deletes a key (A40).
    DeleteKey(DeleteKey) "delete_key" Progress -> Deleted;
    /// Removes expired keys (A40).
    SweepKeys(SweepKeys) "sweep_keys" Progress obligation -> Done;
    /// Creates a namespace (A41).
    CreateNamespace(CreateNamespace) "create_namespace" Intake -> NamespaceCreated;
    /// Deletes an empty namespace (A41).
    DeleteNamespace(DeleteNamespace) "delete_namespace" Progress -> NamespaceDeleted;
    /// Creates a stream (A30).
    CreateStream(CreateStream) "create_stream" Intake -> StreamCreated;
    /// Appends records to a stream (A30).
    AppendRecords(AppendRecords) "append_records" Intake -> RecordsAppended;
    /// Gives up a stream's oldest records (A30).
    TrimStream(TrimStream) "trim_stream" Progress -> Done;
    /// Deletes a stream (A30).
    DeleteStream(DeleteStream) "delete_stream" Progress -> Deleted;
    /// Creates a consumer group (A31).
    CreateGroup(CreateGroup) "create_group" Intake -> GroupCreated;
    /// Joins a consumer to a group, and keeps it there (A31).
    JoinGroup(JoinGroup) "join_group" Progress -> GroupJoined;
    /// Removes a consumer from a group (A31).
    LeaveGroup(LeaveGroup) "leave_group" Progress -> Deleted;
    /// Gives records to a consumer (A31).
    TakeRecords(TakeRecords) "take_records" Progress -> RecordsTaken;
    /// Settles records that are processed (A31).
    AckRecords(AckRecords) "ack_records" Progress -> RecordsSettled;
    /// Gives records back (A31).
    NackRecords(NackRecords) "nack_records" Progress -> RecordsSettled;
    /// Keeps records longer (A31).
    TouchRecords(TouchRecords) "touch_records" Progress -> LeaseExtended;
    /// Deletes a consumer group (A31).
    DeleteGroup(DeleteGroup) "delete_group" Progress -> Deleted;
    /// Starts runs for records of a trigger's stream (W41).
    FireTrigger(FireTrigger) "fire_trigger" Progress obligation -> TriggerFired,
        of |fire| Subject::Trigger(fire.definition);
    /// Takes up what was set aside after a bug (design rule 10).
    RetryQuarantined(RetryQuarantined) "retry_quarantined" Progress -> Done,
        of |retry| Subject::Quarantined(retry.subject());
}
