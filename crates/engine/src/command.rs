//! Requests to change state, as the log carries them.

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
use crate::request::{RequestId, SweepRequests};
use crate::retention::SweepRuns;
use crate::run::{CancelRun, DecideChildInput, SignalRun, StartRun, StartTracedRun};
use crate::schedule::{FireSchedule, PlanSchedule};
use crate::stream::{AppendRecords, CreateStream, DeleteStream, TrimStream};
use crate::tables::{DefinitionNumber, Quarantined};
use crate::task::{AcceptTask, AssignTasks, CompleteTask, FailTask, ReportTask, TouchTask};
use crate::timer::FireTimer;
use crate::trigger::FireTrigger;
use crate::worker::{
    DeregisterWorker, DrainWorker, HeartbeatWorker, RegisterWorker, ReleaseWorker,
};
use crate::workflow::{CreateDefinition, SetWorkflowEnabled};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A request to change state; it ends in a reply or a rejection, never in silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Makes a retry safe where the command has no natural key (design rule 9).
    pub request_id: Option<RequestId>,
    /// Where it acts.
    pub namespace: Namespace,
    /// What it asks for.
    pub body: Body,
}

/// What a command asks for. Variants are appended, never reordered (design rule 12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Stores a workflow definition (W5).
    CreateDefinition(Box<CreateDefinition>),
    /// Enables or disables a workflow (W42).
    SetWorkflowEnabled(SetWorkflowEnabled),
    /// Starts a run (W20).
    StartRun(StartRun),
    /// Delivers a signal (W19).
    SignalRun(SignalRun),
    /// Cancels a run (W18).
    CancelRun(CancelRun),
    /// Answers whether a child's input satisfies its schema (W4).
    DecideChildInput(DecideChildInput),
    /// Registers an action (A1).
    RegisterAction(Box<RegisterAction>),
    /// Deletes an action (A1).
    DeleteAction(DeleteAction),
    /// Enables or disables an action (A1).
    SetActionEnabled(SetActionEnabled),
    /// Starts an action run outside any workflow (A2).
    InvokeAction(InvokeAction),
    /// Ends a task with an outcome (A4).
    CompleteTask(CompleteTask),
    /// Ends a task with an error (A5).
    FailTask(FailTask),
    /// Extends a task's lease (A4).
    TouchTask(TouchTask),
    /// Gives ready tasks to the entry's offers (design rule 3).
    AssignTasks(AssignTasks),
    /// Registers a worker (A20).
    RegisterWorker(Box<RegisterWorker>),
    /// Keeps a worker healthy (A20).
    HeartbeatWorker(HeartbeatWorker),
    /// Begins a worker's drain (A21).
    DrainWorker(DrainWorker),
    /// Removes a worker (A20).
    DeregisterWorker(DeregisterWorker),
    /// Frees the leases of a worker that is known to be gone (A4).
    ReleaseWorker(ReleaseWorker),
    /// Fires one due timer (design rule 6).
    FireTimer(FireTimer),
    /// Marks the beginning of a leader's term (A4).
    BeginTerm(BeginTerm),
    /// Forgets old request ids (design rule 9).
    SweepRequests(SweepRequests),
    /// Ends a task's lease; its outcome comes by a report (W38).
    AcceptTask(AcceptTask),
    /// Ends a task with an outcome that comes by a report (W38).
    ReportTask(ReportTask),
    /// Drops cached results of plans (W37).
    InvalidateCache(InvalidateCache),
    /// Gives a plan's executors a fresh chance (W31).
    ResetPlan(ResetPlan),
    /// Says when a schedule fires next (W40).
    PlanSchedule(PlanSchedule),
    /// Fires one firing of a schedule (W40).
    FireSchedule(FireSchedule),
    /// Forgets runs that were kept for long enough (W4).
    SweepRuns(SweepRuns),
    /// Runs dead letters again (A6).
    RequeueDeadLetters(RequeueDeadLetters),
    /// Throws dead letters away (A6).
    PurgeDeadLetters(PurgeDeadLetters),
    /// Writes a value (A40).
    SetKey(SetKey),
    /// Deletes a key (A40).
    DeleteKey(DeleteKey),
    /// Removes expired keys (A40).
    SweepKeys(SweepKeys),
    /// Creates a namespace (A41).
    CreateNamespace(CreateNamespace),
    /// Deletes an empty namespace (A41).
    DeleteNamespace(DeleteNamespace),
    /// Creates a stream (A30).
    CreateStream(CreateStream),
    /// Appends records to a stream (A30).
    AppendRecords(AppendRecords),
    /// Gives up a stream's oldest records (A30).
    TrimStream(TrimStream),
    /// Deletes a stream (A30).
    DeleteStream(DeleteStream),
    /// Creates a consumer group (A31).
    CreateGroup(CreateGroup),
    /// Joins a consumer to a group, and keeps it there (A31).
    JoinGroup(JoinGroup),
    /// Removes a consumer from a group (A31).
    LeaveGroup(LeaveGroup),
    /// Gives records to a consumer (A31).
    TakeRecords(TakeRecords),
    /// Settles records that are processed (A31).
    AckRecords(AckRecords),
    /// Gives records back (A31).
    NackRecords(NackRecords),
    /// Keeps records longer (A31).
    TouchRecords(TouchRecords),
    /// Deletes a consumer group (A31).
    DeleteGroup(DeleteGroup),
    /// Starts runs for records of a trigger's stream (W41).
    FireTrigger(FireTrigger),
    /// Takes up what was set aside after a bug (design rule 10).
    RetryQuarantined(RetryQuarantined),
    /// Starts a run in its caller's trace (W20).
    StartTracedRun(StartTracedRun),
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

impl Command {
    /// A command without a request id.
    #[must_use]
    pub fn new(namespace: Namespace, body: Body) -> Self {
        Self {
            request_id: None,
            namespace,
            body,
        }
    }

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
    /// How the command is admitted.
    #[must_use]
    pub fn admission(&self) -> Admission {
        match self {
            Self::CreateDefinition(_)
            | Self::StartRun(_)
            | Self::RegisterAction(_)
            | Self::InvokeAction(_)
            | Self::RequeueDeadLetters(_)
            | Self::SetKey(_)
            | Self::CreateNamespace(_)
            | Self::CreateStream(_)
            | Self::AppendRecords(_)
            | Self::CreateGroup(_)
            | Self::StartTracedRun(_) => Admission::Intake,
            Self::SetWorkflowEnabled(_)
            | Self::SignalRun(_)
            | Self::CancelRun(_)
            | Self::DecideChildInput(_)
            | Self::DeleteAction(_)
            | Self::SetActionEnabled(_)
            | Self::CompleteTask(_)
            | Self::FailTask(_)
            | Self::TouchTask(_)
            | Self::AssignTasks(_)
            | Self::RegisterWorker(_)
            | Self::HeartbeatWorker(_)
            | Self::DrainWorker(_)
            | Self::DeregisterWorker(_)
            | Self::ReleaseWorker(_)
            | Self::FireTimer(_)
            | Self::BeginTerm(_)
            | Self::SweepRequests(_)
            | Self::AcceptTask(_)
            | Self::ReportTask(_)
            | Self::InvalidateCache(_)
            | Self::ResetPlan(_)
            | Self::PlanSchedule(_)
            | Self::FireSchedule(_)
            | Self::SweepRuns(_)
            | Self::PurgeDeadLetters(_)
            | Self::DeleteKey(_)
            | Self::SweepKeys(_)
            | Self::DeleteNamespace(_)
            | Self::TrimStream(_)
            | Self::DeleteStream(_)
            | Self::JoinGroup(_)
            | Self::LeaveGroup(_)
            | Self::TakeRecords(_)
            | Self::AckRecords(_)
            | Self::NackRecords(_)
            | Self::TouchRecords(_)
            | Self::DeleteGroup(_)
            | Self::FireTrigger(_)
            | Self::RetryQuarantined(_) => Admission::Progress,
        }
    }

    /// The body as its caller sent it: without the verdict that a node adds before proposal, and without
    /// the trace that the caller is in. Both may differ when the same request is sent again.
    pub(crate) fn as_asked(&self) -> Cow<'_, Self> {
        let start = if let Self::StartTracedRun(traced) = self {
            &traced.start
        } else if let Self::StartRun(start) = self
            && start.input_checked_for.is_some()
        {
            start
        } else {
            return Cow::Borrowed(self);
        };
        let input_checked_for = None;
        Cow::Owned(Self::StartRun(StartRun {
            input_checked_for,
            ..start.clone()
        }))
    }

    /// What a panic in this command sets aside.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self {
            Self::SignalRun(signal) => Subject::Run(signal.run_id.clone()),
            Self::CancelRun(cancel) => Subject::Run(cancel.run_id.clone()),
            Self::DecideChildInput(decision) => Subject::RunNumber(decision.parent),
            Self::CompleteTask(complete) => Subject::ActionRun(complete.token.action_run),
            Self::FailTask(fail) => Subject::ActionRun(fail.token.action_run),
            Self::TouchTask(touch) => Subject::ActionRun(touch.token.action_run),
            Self::AcceptTask(accept) => Subject::ActionRun(accept.token.action_run),
            Self::ReportTask(report) => Subject::ActionRun(report.token.action_run),
            Self::FireTimer(fire) => Subject::Timer(fire.timer),
            Self::HeartbeatWorker(heartbeat) => Subject::Worker(heartbeat.worker_id.clone()),
            Self::ReleaseWorker(release) => Subject::Worker(release.worker_id.clone()),
            Self::PlanSchedule(plan) => Subject::Schedule(plan.definition),
            Self::FireSchedule(fire) => Subject::Schedule(fire.definition),
            Self::FireTrigger(fire) => Subject::Trigger(fire.definition),
            Self::RetryQuarantined(retry) => Subject::Quarantined(retry.subject()),
            Self::CreateDefinition(_)
            | Self::SetWorkflowEnabled(_)
            | Self::StartRun(_)
            | Self::RegisterAction(_)
            | Self::DeleteAction(_)
            | Self::SetActionEnabled(_)
            | Self::InvokeAction(_)
            | Self::AssignTasks(_)
            | Self::RegisterWorker(_)
            | Self::DrainWorker(_)
            | Self::DeregisterWorker(_)
            | Self::BeginTerm(_)
            | Self::SweepRequests(_)
            | Self::SweepRuns(_)
            | Self::RequeueDeadLetters(_)
            | Self::PurgeDeadLetters(_)
            | Self::InvalidateCache(_)
            | Self::ResetPlan(_)
            | Self::SetKey(_)
            | Self::DeleteKey(_)
            | Self::SweepKeys(_)
            | Self::CreateNamespace(_)
            | Self::DeleteNamespace(_)
            | Self::CreateStream(_)
            | Self::AppendRecords(_)
            | Self::TrimStream(_)
            | Self::DeleteStream(_)
            | Self::CreateGroup(_)
            | Self::JoinGroup(_)
            | Self::LeaveGroup(_)
            | Self::TakeRecords(_)
            | Self::AckRecords(_)
            | Self::NackRecords(_)
            | Self::TouchRecords(_)
            | Self::DeleteGroup(_)
            | Self::StartTracedRun(_) => Subject::Nothing,
        }
    }
}
