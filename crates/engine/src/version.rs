//! What a cluster has agreed to decide (design rule 12).
//!
//! Replicas of one cluster may run different releases while it is upgraded, and must decide the same. So what a
//! release decides differently from the one before, a new command included, begins with an engine version of
//! its own. The cluster agrees on a version, as an entry of its log, once every member knows it; until then all
//! decide as before, and no newer command is proposed.

use crate::command::Body;

/// The newest engine version that this build knows: it decides as any from [`ENGINE_VERSION_FIRST`] to this one.
pub const ENGINE_VERSION: u32 = 4;

/// The version on which a cluster has agreed that has never raised it.
pub const ENGINE_VERSION_FIRST: u32 = 1;

/// What is set aside can be taken up again, and what that needs is kept.
pub(crate) const TAKES_UP: u32 = 2;

/// A run remembers the trace that it was started in.
pub(crate) const TRACES: u32 = 3;

/// A run that was set aside goes on although its child was forgotten meanwhile.
pub(crate) const OUTLIVES_CHILD: u32 = 3;

/// Four times as many request ids are remembered at once.
pub(crate) const REMEMBERS_MORE: u32 = 4;

const _: () = assert!(ENGINE_VERSION >= ENGINE_VERSION_FIRST);

impl Body {
    /// The engine version with which the command came: a cluster below it must not propose it.
    #[must_use]
    pub fn since(&self) -> u32 {
        match self {
            Self::RetryQuarantined(_) => TAKES_UP,
            Self::StartTracedRun(_) => TRACES,
            Self::CreateDefinition(_)
            | Self::SetWorkflowEnabled(_)
            | Self::StartRun(_)
            | Self::SignalRun(_)
            | Self::CancelRun(_)
            | Self::DecideChildInput(_)
            | Self::RegisterAction(_)
            | Self::DeleteAction(_)
            | Self::SetActionEnabled(_)
            | Self::InvokeAction(_)
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
            | Self::RequeueDeadLetters(_)
            | Self::PurgeDeadLetters(_)
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
            | Self::FireTrigger(_) => ENGINE_VERSION_FIRST,
        }
    }
}
