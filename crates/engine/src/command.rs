//! Commands: requests to change state, and the table of their static properties.

use crate::access::{
    Actor, Authority, BindSubject, BlockSubject, CreateToken, InitializeAccess, Permission,
    RecordTokenUses, RecoverAccess, RevokeToken, RotateToken, SetAccessMode, UnbindSubject,
    UnblockSubject,
};
use crate::action::{
    CancelActionRun, DeleteAction, InvokeAction, RegisterAction, SetActionEnabled,
};
use crate::command_scope::{ClusterScope, CommandScope};
use crate::dead_letter::{PurgeDeadLetters, RequeueDeadLetters};
use crate::envelope::CommandEnvelope;
use crate::group::{
    AckRecords, CreateGroup, DeleteGroup, JoinGroup, LeaveGroup, NackRecords, TakeRecords,
    TouchRecords,
};
use crate::ids::{Namespace, RequestId};
use crate::kv::{DeleteKey, SetKey, SweepKeys};
use crate::leadership::BeginTerm;
use crate::limits::LISTED_ROW_BYTES;
use crate::namespace::{CreateNamespace, DeleteNamespace};
use crate::persisted::{self, Persisted};
use crate::plan::{InvalidateCache, ResetPlan};
use crate::quarantine::ReleaseQuarantined;
use crate::quota::SetQuota;
use crate::reply::{self, Reply, UnexpectedReply};
use crate::request::SweepRequests;
use crate::retention::SweepRuns;
use crate::run::{
    AddInfo, CancelRun, CompleteStep, DecideApproval, DecideLocks, DecideSchemaCheck, ResumeRun,
    RetryRun, SignalRun, StartRun,
};
use crate::schedule::{FireSchedule, SetNextFiring};
use crate::settings::SetClusterSettings;
use crate::stream::{AppendRecords, CreateStream, DeleteStream, TrimStream};
use crate::subject::Subject;
use crate::task::{
    AcceptTask, AddTaskInfo, AssignTasks, CompleteTask, FailTask, ReportTask, TouchTask,
};
use crate::timer::FireTimer;
use crate::trigger::FireTrigger;
use crate::turn::{Turn, TurnResult};
use crate::version::ENGINE_VERSION_FIRST;
use crate::worker::{
    DeregisterWorker, DrainWorker, HeartbeatWorker, RegisterWorker, ReleaseWorker,
};
use crate::workflow::{CreateDefinition, DeleteWorkflow, SetWorkflowEnabled};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A request to change state. Every command ends in a reply or a rejection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command<B: Operation = Body> {
    /// Makes a retry safe if the command has no natural key (design rule 9).
    pub request_id: Option<RequestId>,
    /// Where the command acts.
    pub scope: B::Scope,
    /// The requested operation.
    pub body: B,
}

/// The admission class of a command, which decides when it is refused while the queue is long (design rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Begins new work; refused first.
    Intake,
    /// Lets open work end; has reserved capacity.
    Progress,
}

impl<B: Operation<Scope = Namespace>> Command<B> {
    /// Creates a command without a request id.
    #[must_use]
    pub fn new(namespace: Namespace, body: B) -> Self {
        Self {
            request_id: None,
            scope: namespace,
            body,
        }
    }
}

impl<B: Operation<Scope = ClusterScope>> Command<B> {
    /// Creates a command that acts in no namespace, without a request id.
    #[must_use]
    pub fn of_cluster(body: B) -> Self {
        Self {
            request_id: None,
            scope: ClusterScope,
            body,
        }
    }
}

impl Command {
    /// What the command, whose encoded size is `bytes`, counts for in an entry: an estimate of what it writes. In bytes.
    #[must_use]
    pub fn weight(&self, bytes: usize) -> usize {
        bytes + self.body.listed_rows() * LISTED_ROW_BYTES
    }
}

impl<B: Operation> Command<B> {
    /// The same command with its body as [`Body`].
    #[must_use]
    pub fn untyped(self) -> Command {
        Command {
            request_id: self.request_id,
            scope: self.scope.into(),
            body: self.body.into(),
        }
    }
}

impl Command {
    /// The command, carried out on behalf of the actor.
    #[must_use]
    pub fn by(self, actor: Actor) -> CommandEnvelope {
        CommandEnvelope {
            actor,
            command: self,
        }
    }

    /// The command as it is proposed in an open cluster: by the cluster itself if no caller may propose it, else by a caller
    /// without a credential. For tests, the simulation and benchmarks.
    #[must_use]
    pub fn by_anyone(self) -> CommandEnvelope {
        let actor = match self.body.authority(&self.scope) {
            Authority::System => Actor::System,
            Authority::Caller(..) | Authority::CallerOrSystem(..) | Authority::TaskToken => {
                Actor::Anonymous
            }
        };
        self.by(actor)
    }
}

impl Body {
    /// A command with this body, without a request id: in `namespace`, unless commands of its kind act in none.
    #[must_use]
    pub fn into_command(self, namespace: Namespace) -> Command {
        let scope = match self.kind().is_of_cluster() {
            true => CommandScope::Cluster,
            false => CommandScope::Namespace(namespace),
        };
        Command {
            request_id: None,
            scope,
            body: self,
        }
    }

    /// The body as the caller sent it: without the input verdict, which a node adds before proposal, and without the
    /// caller's trace context. Both may differ when the same request is sent again.
    pub(crate) fn as_asked(&self) -> Cow<'_, Self> {
        match self {
            Self::StartRun(start) if !start.is_as_asked() => {
                Cow::Owned(Self::StartRun(start.as_asked()))
            }
            Self::RetryRun(retry) if !retry.start.is_as_asked() => {
                Cow::Owned(Self::RetryRun(RetryRun {
                    run_id: retry.run_id.clone(),
                    run: retry.run,
                    from: retry.from.clone(),
                    start: retry.start.as_asked(),
                }))
            }
            body => Cow::Borrowed(body),
        }
    }
}

/// A command's body, typed by its scope and its reply.
pub trait Operation: Into<Body> {
    /// Where the command acts: a [`Namespace`], or the [`ClusterScope`].
    type Scope: Into<CommandScope> + Clone;
    /// The reply that the proposer gets when the command is accepted.
    type Reply: TryFrom<Reply, Error: Into<UnexpectedReply>>;
}

/// An untyped body may have any scope and get any reply.
impl Operation for Body {
    type Scope = CommandScope;
    type Reply = Reply;
}

/// Defines [`Body`], [`CommandKind`] and the static properties of each command, one row per command: variant and type,
/// optionally `versions` if the type has several, published name, admission class, optionally `obligation` or `bulk`,
/// actors (`by`), reply, optionally `in cluster` if it acts in no namespace, optionally the subject that a panic quarantines
/// (`of`), and optionally the engine version that its content requires (`since`). A `bulk` command may read or write far
/// more than it carries.
///
/// The actors are `System`, callers with one of the permissions, or both; `TaskToken` if the token of the task is the
/// proof; or `Content` if the command says itself what it needs.
macro_rules! commands {
    (@is_obligation obligation) => {
        true
    };
    (@is_obligation bulk) => {
        false
    };
    (@is_bulk obligation) => {
        false
    };
    (@is_bulk bulk) => {
        true
    };
    (@persisted $type:ty) => {
        impl Persisted for $type {}
    };
    (@persisted $type:ty, versions) => {};
    (@authority $command:ident, $scope:ident; System) => {{
        let _ = $command;
        Authority::System
    }};
    (@authority $command:ident, $scope:ident; TaskToken) => {{
        let _ = $command;
        Authority::TaskToken
    }};
    (@authority $command:ident, $scope:ident; Content) => {
        $command.authority($scope)
    };
    (@authority $command:ident, $scope:ident; System | $($permission:ident)|+) => {{
        let _ = $command;
        Authority::CallerOrSystem(&[$(Permission::$permission),+], $scope)
    }};
    (@authority $command:ident, $scope:ident; $($permission:ident)|+) => {{
        let _ = $command;
        Authority::Caller(&[$(Permission::$permission),+], $scope)
    }};
    (@scope) => {
        Namespace
    };
    (@scope cluster) => {
        ClusterScope
    };
    (@is_of_cluster cluster) => {
        true
    };
    (@apply $command:ident, $turn:ident, $scope:ident) => {
        $command.apply($turn, $scope.expect_namespace()?)
    };
    (@apply $command:ident, $turn:ident, $scope:ident, cluster) => {{
        $scope.expect_cluster()?;
        $command.apply($turn)
    }};
    ($(
        $(#[$doc:meta])*
        $name:ident($type:ty) $($versions:ident)? $spelling:literal $admission:ident $($class:ident)?,
            by $($actor:ident)|+ -> $reply:ident
            $(, in $scope:ident)?
            $(, of |$subject_of:ident| $subject:expr)?
            $(, since |$since_of:ident| $since:expr)?
            $(, listing |$listing_of:ident| $listed_count:expr)?;
    )*) => {
        /// The operation that a command requests. Variants are appended, never reordered (design rule 12).
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Body {
            $($(#[$doc])* $name(#[serde(with = "persisted")] $type),)*
        }

        /// The kind of a [`Command`], without its fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CommandKind {
            $(#[doc = concat!("`", $spelling, "`.")] $name,)*
        }

        impl CommandKind {
            /// All kinds, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name, in snake case.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $spelling,)*
                }
            }

            /// Whether commands of this kind act in no namespace.
            #[must_use]
            pub fn is_of_cluster(self) -> bool {
                match self {
                    $(Self::$name => false $(|| commands!(@is_of_cluster $scope))?,)*
                }
            }

            /// Whether the command fulfils an obligation: a driver proposes it, and proposes it again if it is rejected
            /// (design rule 6).
            #[must_use]
            pub fn is_obligation(self) -> bool {
                match self {
                    $(Self::$name => false $(|| commands!(@is_obligation $class))?,)*
                }
            }

            /// Whether the command is rejected with [`Rejection::EntryFull`](crate::Rejection::EntryFull) in an entry
            /// whose budget is used up. Work on runs is not rejected but continued in a later entry (design rule 13).
            #[must_use]
            pub fn needs_budget(self) -> bool {
                let is_bulk = match self {
                    $(Self::$name => false $(|| commands!(@is_bulk $class))?,)*
                };
                is_bulk || self.is_obligation()
            }
        }

        $(
            impl From<$type> for Body {
                fn from(body: $type) -> Self {
                    Self::$name(body)
                }
            }

            commands!(@persisted $type $(, $versions)?);

            impl Operation for $type {
                type Scope = commands!(@scope $($scope)?);
                type Reply = reply::$reply;
            }
        )*

        impl Body {
            /// The kind of the command.
            #[must_use]
            pub fn kind(&self) -> CommandKind {
                match self {
                    $(Self::$name(_) => CommandKind::$name,)*
                }
            }

            /// The admission class of the command.
            #[must_use]
            pub fn admission(&self) -> Admission {
                match self {
                    $(Self::$name(_) => Admission::$admission,)*
                }
            }

            /// The subject that a panic in this command quarantines.
            #[must_use]
            pub fn subject(&self) -> Subject {
                $($(if let Self::$name($subject_of) = self {
                    return $subject;
                })?)*
                Subject::Nothing
            }

            /// The engine version that the command and its content require. A cluster that has agreed on an older
            /// version must not propose it (design rule 12).
            #[must_use]
            pub fn since(&self) -> u32 {
                $($(if let Self::$name($since_of) = self {
                    return $since;
                })?)*
                ENGINE_VERSION_FIRST
            }

            /// What the command, which acts in the scope, needs of its actor.
            pub(crate) fn authority<'c>(&'c self, scope: &'c CommandScope) -> Authority<'c> {
                match self {
                    $(Self::$name(command) => commands!(@authority command, scope; $($actor)|+),)*
                }
            }

            /// How many rows the command lists: each takes much more space than its place in the command.
            fn listed_rows(&self) -> usize {
                $($(if let Self::$name($listing_of) = self {
                    return $listed_count;
                })?)*
                0
            }

            /// Applies the command in its turn.
            pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, scope: &CommandScope) -> TurnResult<Reply> {
                match self {
                    $(Self::$name(command) => {
                        commands!(@apply command, turn, scope $(, $scope)?).map(Reply::from)
                    })*
                }
            }
        }
    };
}

commands! {
    /// Stores a workflow definition (W5).
    CreateDefinition(Box<CreateDefinition>) "create_definition" Intake bulk, by WorkflowWrite -> DefinitionCreated,
        since |create| create.definition.since();
    /// Enables or disables a workflow (W42).
    SetWorkflowEnabled(SetWorkflowEnabled) "set_workflow_enabled" Progress bulk, by WorkflowToggle -> Done;
    /// Starts a run (W20).
    StartRun(StartRun) "start_run" Intake bulk, by RunStart -> RunStarted;
    /// Delivers a signal (W19).
    SignalRun(SignalRun) "signal_run" Progress, by RunControl -> SignalAccepted,
        of |signal| Subject::Run(signal.run_id.clone());
    /// Cancels a run (W18).
    CancelRun(CancelRun) "cancel_run" Progress, by RunControl -> RunCancelled,
        of |cancel| Subject::Run(cancel.run_id.clone());
    /// Delivers the result of validating a child's input against its schema (W4).
    DecideSchemaCheck(DecideSchemaCheck) "decide_schema_check" Progress, by System -> Done,
        of |decision| Subject::RunNumber(decision.run);
    /// Registers an action (A1).
    RegisterAction(Box<RegisterAction>) "register_action" Intake, by Content -> ActionRegistered;
    /// Deletes an action (A1).
    DeleteAction(DeleteAction) "delete_action" Progress bulk, by ActionWrite -> Done;
    /// Enables or disables an action (A1).
    SetActionEnabled(SetActionEnabled) "set_action_enabled" Progress, by ActionWrite -> Done;
    /// Starts a stand-alone action run (A2).
    InvokeAction(InvokeAction) "invoke_action" Intake, by ActionInvoke -> ActionInvoked;
    /// Ends a task with an outcome (A4).
    CompleteTask(CompleteTask) "complete_task" Progress, by System | TaskWork -> Done,
        of |complete| Subject::ActionRun(complete.token.action_run);
    /// Ends a task with an error (A5).
    FailTask(FailTask) "fail_task" Progress bulk, by System | TaskWork -> Done,
        of |fail| Subject::ActionRun(fail.token.action_run);
    /// Extends a task's lease (A4).
    TouchTask(TouchTask) "touch_task" Progress, by System | TaskWork -> LeaseExtended,
        of |touch| Subject::ActionRun(touch.token.action_run);
    /// Assigns ready tasks to the entry's offers (design rule 3).
    AssignTasks(AssignTasks) "assign_tasks" Progress bulk, by System -> TasksAssigned;
    /// Registers a worker (A20).
    RegisterWorker(Box<RegisterWorker>) "register_worker" Progress bulk, by System | TaskWork -> HeartbeatRecorded,
        listing |register| register.processes.len();
    /// Keeps a worker healthy (A20).
    HeartbeatWorker(HeartbeatWorker) "heartbeat_worker" Progress, by System | TaskWork -> HeartbeatRecorded,
        of |heartbeat| Subject::Worker(heartbeat.worker_id.clone());
    /// Begins a worker's drain (A21).
    DrainWorker(DrainWorker) "drain_worker" Progress, by TaskWork | WorkerControl -> Done;
    /// Removes a worker (A20).
    DeregisterWorker(DeregisterWorker) "deregister_worker" Progress bulk, by System | TaskWork | WorkerControl -> Done;
    /// Releases the leases of a worker that is known to be gone (A4).
    ReleaseWorker(ReleaseWorker) "release_worker" Progress bulk, by System -> Done,
        of |release| Subject::Worker(release.worker_id.clone());
    /// Fires a due timer (design rule 6).
    FireTimer(FireTimer) "fire_timer" Progress obligation, by System -> Done, in cluster,
        of |fire| Subject::Timer(fire.timer);
    /// Marks the start of a leader's term (A4).
    BeginTerm(BeginTerm) "begin_term" Progress, by System -> Done, in cluster;
    /// Deletes expired request ids (design rule 9).
    SweepRequests(SweepRequests) "sweep_requests" Progress obligation, by System -> Done, in cluster;
    /// Ends a task's lease; its outcome arrives later in a report (W38).
    AcceptTask(AcceptTask) "accept_task" Progress, by TaskWork -> TaskAccepted,
        of |accept| Subject::ActionRun(accept.token.action_run);
    /// Ends an accepted task with the outcome of a report (W38).
    ReportTask(ReportTask) "report_task" Progress bulk, by TaskToken -> Done, in cluster,
        of |report| Subject::ActionRun(report.token.action_run);
    /// Drops cached results of plans (W37).
    InvalidateCache(InvalidateCache) "invalidate_cache" Progress bulk, by CacheWrite -> CacheInvalidated;
    /// Clears the health, breakers and rate limits of a plan's executors (W31).
    ResetPlan(ResetPlan) "reset_plan" Progress, by PlanReset -> Done;
    /// Sets the next firing of a schedule (W40).
    SetNextFiring(SetNextFiring) "set_next_firing" Progress, by System -> Done,
        of |next| Subject::Schedule(next.definition);
    /// Fires a schedule once (W40).
    FireSchedule(FireSchedule) "fire_schedule" Progress obligation, by System -> ScheduleFired,
        of |fire| Subject::Schedule(fire.definition);
    /// Deletes runs whose retention has ended (W4).
    SweepRuns(SweepRuns) "sweep_runs" Progress obligation, by System -> Done, in cluster;
    /// Runs dead letters again as new action runs (A6).
    RequeueDeadLetters(RequeueDeadLetters) "requeue_dead_letters" Intake bulk,
        by DeadLetterWrite -> DeadLettersRequeued;
    /// Deletes dead letters (A6).
    PurgeDeadLetters(PurgeDeadLetters) "purge_dead_letters" Progress bulk, by DeadLetterWrite -> DeadLettersPurged;
    /// Writes a value (A40).
    SetKey(SetKey) "set_key" Intake, by System | KvWrite -> KeySet;
    /// Deletes a key (A40).
    DeleteKey(DeleteKey) "delete_key" Progress, by System | KvWrite -> Deleted;
    /// Deletes expired keys (A40).
    SweepKeys(SweepKeys) "sweep_keys" Progress obligation, by System -> Done, in cluster;
    /// Creates a namespace (A41).
    CreateNamespace(CreateNamespace) versions "create_namespace" Intake,
        by System | NamespaceCreate -> NamespaceCreated,
        since |create| create.since();
    /// Deletes an empty namespace (A41).
    DeleteNamespace(DeleteNamespace) "delete_namespace" Progress bulk, by NamespacePurge -> NamespaceDeleted;
    /// Creates a stream (A30).
    CreateStream(CreateStream) "create_stream" Intake, by StreamWrite -> StreamCreated;
    /// Appends records to a stream (A30).
    AppendRecords(AppendRecords) "append_records" Intake bulk, by StreamAppend -> RecordsAppended,
        listing |append| append.records.len();
    /// Deletes a stream's oldest records (A30).
    TrimStream(TrimStream) "trim_stream" Progress bulk, by StreamWrite -> Done;
    /// Deletes a stream (A30).
    DeleteStream(DeleteStream) "delete_stream" Progress bulk, by StreamWrite -> Deleted;
    /// Creates a consumer group (A31).
    CreateGroup(CreateGroup) "create_group" Intake, by StreamWrite -> GroupCreated;
    /// Makes a consumer a member of a group, or renews its membership (A31).
    JoinGroup(JoinGroup) "join_group" Progress bulk, by TaskWork -> GroupJoined;
    /// Removes a consumer from a group (A31).
    LeaveGroup(LeaveGroup) "leave_group" Progress bulk, by TaskWork -> Deleted;
    /// Delivers records to a consumer (A31).
    TakeRecords(TakeRecords) "take_records" Progress bulk, by TaskWork -> RecordsTaken;
    /// Marks deliveries as consumed (A31).
    AckRecords(AckRecords) "ack_records" Progress bulk, by TaskWork -> DeliveriesEnded,
        listing |ack| ack.records.len();
    /// Returns deliveries for redelivery (A31).
    NackRecords(NackRecords) "nack_records" Progress bulk, by TaskWork -> DeliveriesEnded,
        listing |nack| nack.records.len();
    /// Extends ack deadlines (A31).
    TouchRecords(TouchRecords) "touch_records" Progress bulk, by TaskWork -> LeaseExtended,
        listing |touch| touch.records.len();
    /// Deletes a consumer group (A31).
    DeleteGroup(DeleteGroup) "delete_group" Progress bulk, by StreamWrite -> Deleted;
    /// Starts runs for records of a trigger's stream (W41).
    FireTrigger(FireTrigger) "fire_trigger" Progress obligation, by System -> TriggerFired,
        of |fire| Subject::Trigger(fire.definition);
    /// Returns a quarantined item to service (design rule 10).
    ReleaseQuarantined(ReleaseQuarantined) "release_quarantined" Progress bulk, by ClusterOperate -> Done, in cluster,
        of |retry| Subject::Quarantined(retry.subject());
    /// Cancels a stand-alone action run (A2).
    CancelActionRun(CancelActionRun) "cancel_action_run" Progress, by RunControl -> Done,
        of |cancel| Subject::ActionRun(cancel.action_run);
    /// Deletes a workflow that has no runs (W5).
    DeleteWorkflow(DeleteWorkflow) "delete_workflow" Progress bulk, by WorkflowWrite -> WorkflowDeleted;
    /// Approves or rejects what a step asks for (W61).
    DecideApproval(DecideApproval) "decide_approval" Progress, by RunApprove -> ApprovalDecided,
        of |decision| Subject::Run(decision.run_id.clone());
    /// Reports the outcome of an accepted task by its step (W75).
    CompleteStep(CompleteStep) "complete_step" Progress bulk, by RunControl -> StepReported,
        of |complete| Subject::Run(complete.run_id.clone());
    /// Reopens a run that has failed, timed out or was cancelled (W89).
    ResumeRun(ResumeRun) "resume_run" Intake bulk, by RunControl -> RunResumed,
        of |resume| Subject::Run(resume.run_id.clone());
    /// Delivers the compiled locks of a run (W85).
    DecideLocks(DecideLocks) "decide_locks" Progress, by System -> Done,
        of |decision| Subject::RunNumber(decision.run);
    /// Adds an info entry to a run (W92).
    AddInfo(AddInfo) "add_info" Intake, by RunControl -> InfoAdded,
        of |add| Subject::Run(add.run_id.clone());
    /// Adds an info entry to the run of a task (W92).
    AddTaskInfo(AddTaskInfo) "add_task_info" Intake, by System | TaskWork -> InfoAdded,
        of |add| Subject::ActionRun(add.token.action_run);
    /// Starts a new run to replace an ended run (W90).
    RetryRun(RetryRun) "retry_run" Intake bulk, by RunControl -> RunStarted;
    /// Changes settings of the cluster (A42).
    SetClusterSettings(SetClusterSettings) "set_cluster_settings" Progress, by ClusterOperate -> Done, in cluster;
    /// Sets the access mode of a new cluster (X1).
    InitializeAccess(InitializeAccess) "initialize_access" Progress, by System -> Done, in cluster;
    /// Opens or closes the cluster (X1).
    SetAccessMode(SetAccessMode) "set_access_mode" Progress, by Content -> Done, in cluster;
    /// Creates an API token (X10).
    CreateToken(Box<CreateToken>) "create_token" Intake, by Content -> TokenCreated, in cluster;
    /// Gives an API token another secret (X10).
    RotateToken(Box<RotateToken>) "rotate_token" Progress, by Content -> Done, in cluster;
    /// Ends an API token (X10).
    RevokeToken(RevokeToken) "revoke_token" Progress, by Content -> TokenRevoked, in cluster;
    /// Creates a token that administers the cluster for a day (X4).
    RecoverAccess(RecoverAccess) "recover_access" Progress, by System -> Done, in cluster;
    /// Notes when API tokens were used last (X7).
    RecordTokenUses(RecordTokenUses) "record_token_uses" Intake, by System -> Done, in cluster;
    /// Gives a subject rights (X17).
    BindSubject(Box<BindSubject>) "bind_subject" Intake, by Content -> SubjectBound, in cluster;
    /// Takes the rights of a subject back (X17).
    UnbindSubject(UnbindSubject) "unbind_subject" Progress, by Content -> Done, in cluster;
    /// Refuses a subject (X12).
    BlockSubject(BlockSubject) "block_subject" Progress, by AccessWrite -> Done, in cluster;
    /// Ends the block of a subject (X12).
    UnblockSubject(UnblockSubject) "unblock_subject" Progress, by AccessWrite -> SubjectUnblocked, in cluster;
    /// Changes the quota of a namespace, of a tree or of new namespaces (X37).
    SetQuota(Box<SetQuota>) "set_quota" Progress, by QuotaWrite -> QuotaSet, in cluster;
}
