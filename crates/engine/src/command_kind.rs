//! The kinds of commands: what those who count them tell apart.

use crate::command::Body;

/// Makes [`CommandKind`] from the table: variant and published spelling.
macro_rules! kinds {
    ($($name:ident $spelling:literal;)*) => {
        /// What a [`Command`](crate::Command) asks for, without what it carries.
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
        }

        impl Body {
            /// Its kind.
            #[must_use]
            pub fn kind(&self) -> CommandKind {
                match self {
                    $(Self::$name(_) => CommandKind::$name,)*
                }
            }
        }
    };
}

kinds! {
    CreateDefinition "create_definition";
    SetWorkflowEnabled "set_workflow_enabled";
    StartRun "start_run";
    SignalRun "signal_run";
    CancelRun "cancel_run";
    DecideChildInput "decide_child_input";
    RegisterAction "register_action";
    DeleteAction "delete_action";
    SetActionEnabled "set_action_enabled";
    InvokeAction "invoke_action";
    CompleteTask "complete_task";
    FailTask "fail_task";
    TouchTask "touch_task";
    AssignTasks "assign_tasks";
    RegisterWorker "register_worker";
    HeartbeatWorker "heartbeat_worker";
    DrainWorker "drain_worker";
    DeregisterWorker "deregister_worker";
    ReleaseWorker "release_worker";
    FireTimer "fire_timer";
    BeginTerm "begin_term";
    SweepRequests "sweep_requests";
    AcceptTask "accept_task";
    ReportTask "report_task";
    InvalidateCache "invalidate_cache";
    ResetPlan "reset_plan";
    PlanSchedule "plan_schedule";
    FireSchedule "fire_schedule";
    SweepRuns "sweep_runs";
    RequeueDeadLetters "requeue_dead_letters";
    PurgeDeadLetters "purge_dead_letters";
    SetKey "set_key";
    DeleteKey "delete_key";
    SweepKeys "sweep_keys";
    CreateNamespace "create_namespace";
    DeleteNamespace "delete_namespace";
    CreateStream "create_stream";
    AppendRecords "append_records";
    TrimStream "trim_stream";
    DeleteStream "delete_stream";
    CreateGroup "create_group";
    JoinGroup "join_group";
    LeaveGroup "leave_group";
    TakeRecords "take_records";
    AckRecords "ack_records";
    NackRecords "nack_records";
    TouchRecords "touch_records";
    DeleteGroup "delete_group";
    FireTrigger "fire_trigger";
    RetryQuarantined "retry_quarantined";
    StartTracedRun "start_traced_run";
}
