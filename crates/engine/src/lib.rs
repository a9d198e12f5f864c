//! The pure workflow engine: commands in; writes, history and effects out.
//!
//! Given the same entries, [`Engine::apply`] produces the same bytes of state on every machine and in every build
//! (design rule 1). It uses no clock, randomness, I/O, hash-ordered iteration or floats;
//! [`expression`] alone uses doubles, for operations that IEEE 754 defines exactly.
#![deny(clippy::float_arithmetic)]

pub mod bytes;
pub mod codec;
pub mod definition;
pub mod expression;
pub mod ids;
pub mod json;
pub mod limits;
pub mod reply;
pub mod rows;
pub mod store;
pub mod view;

mod access;
mod access_rejection;
mod action;
mod cache;
mod command;
mod command_scope;
mod dead_letter;
mod decimal;
mod difference;
mod digest;
mod due_time;
mod effect;
mod engine;
mod entry;
mod envelope;
mod exercise;
mod extensions;
mod group;
mod heads;
mod history;
mod kv;
mod leadership;
mod message;
mod mostly_default;
mod namespace;
mod offer;
mod overlay;
mod persisted;
mod plan;
mod quarantine;
mod quota;
mod quota_rejection;
mod rejection;
mod rejection_code;
mod request;
mod resume_rejection;
mod retention;
mod run;
mod schedule;
mod scope_path;
mod settings;
mod sliding_window;
mod stamp;
mod start_rejection;
mod stream;
mod subject;
mod tables;
mod task;
mod timer;
mod trace;
mod trigger;
mod turn;
mod undeliverable;
mod version;
mod worker;
mod workflow;
mod workflow_rejection;

pub use access::{
    AccessMode, Actor, BindSubject, BindingSubject, BindingSubjectInvalid, BlockSubject,
    BootstrapToken, BoundActor, ClusterRole, CreateToken, Grant, GrantInvalid, InitializeAccess,
    NamespacePattern, NamespaceRole, Needed, Permission, PermissionSet, RecordTokenUses,
    RecoverAccess, RevokeToken, RotateToken, SecretHash, SetAccessMode, UnbindSubject,
    UnblockSubject,
};
pub use access_rejection::AccessRejection;
pub use action::{CancelActionRun, DeleteAction, InvokeAction, RegisterAction, SetActionEnabled};
pub use command::{Admission, Body, Command, CommandKind, Operation};
pub use command_scope::{ClusterScope, CommandScope};
pub use dead_letter::{DeadLetterSelector, PurgeDeadLetters, RequeueDeadLetters};
pub use due_time::DueTime;
pub use effect::{Assignment, Effect};
pub use engine::{Applied, Engine};
pub use entry::Entry;
pub use envelope::CommandEnvelope;
pub use exercise::{ENGINE_VERSION_EXERCISE, Mark};
pub use group::{
    AckRecords, CreateGroup, DeleteGroup, JoinGroup, LeaveGroup, NackRecords, NewGroup,
    TakeRecords, TouchRecords,
};
pub use ids::{GroupRef, NodeId, PlanRef, RequestId, TakeId};
pub use kv::{DeleteKey, SetCondition, SetKey, SweepKeys};
pub use leadership::BeginTerm;
pub use mostly_default::{ConstDefault, MostlyDefault};
pub use namespace::{CreateNamespace, DeleteNamespace};
pub use offer::Offer;
pub use plan::{InvalidateCache, ResetPlan};
pub use quarantine::ReleaseQuarantined;
pub use quota::{DimensionKind, QuotaDimension, QuotaScope, SetQuota};
pub use quota_rejection::{QuotaExceeded, QuotaRejection};
pub use rejection::Rejection;
pub use rejection_code::{RejectionCode, RejectionKind};
pub use reply::Reply;
pub use request::SweepRequests;
pub use resume_rejection::{Drift, ResumeRejection};
pub use retention::SweepRuns;
pub use run::{
    AddInfo, CancelRun, CompleteStep, DecideApproval, DecideLocks, DecideSchemaCheck, LocksVerdict,
    ResumeRevision, ResumeRun, RetryFrom, RetryRun, SignalRun, StartRun, StepSelector,
};
pub use schedule::{FireSchedule, SetNextFiring};
pub use settings::SetClusterSettings;
pub use stamp::Stamp;
pub use start_rejection::StartRejection;
pub use stream::{
    AppendRecords, CreateStream, DeleteStream, NewRecord, RecordId, RecordIdInvalid,
    StreamPosition, TrimStream, TrimTo, partition_of,
};
pub use subject::Subject;
pub use tables::{
    AccessRecord, AckTimeoutInvalid, ActionRunRecord, ActionRunStatus, ActionType, AttributeValue,
    BindingRecord, BlockRecord, ClusterRecord, ClusterSettingsRecord, CompensationProgress,
    ConsumerRecord, DefinitionNumber, GroupSettings, KeyRecord, LeaseWatch, NextFiring,
    PayloadOwner, PayloadRef, Phase, Process, ProcessKind, ProcessRecord, QuarantinedKind,
    QuotaRecord, Retention, RunStatus, SchemaVerdict, StreamSettings, TimerKey, TimerKind,
    TokenRecord, WasmLimits, WorkerActivityRecord, WorkerOwner, WorkerRecord, WorkerStatus,
    WorkerType, check_row,
};
pub use task::{
    AcceptTask, AddTaskInfo, AssignTasks, CompleteTask, FailKind, FailTask, FailureOutcome,
    ReportTask, TaskReport, TaskToken, TokenInvalid, TouchTask,
};
pub use timer::FireTimer;
pub use trace::TraceContext;
pub use trigger::{BatchedRecord, FireTrigger, TriggerBatch, TriggerKey, input as trigger_input};
pub use turn::{Budgets, Spent};
pub use undeliverable::Undeliverable;
pub use version::{ENGINE_VERSION, ENGINE_VERSION_FIRST};
pub use worker::{
    Departure, DeregisterWorker, DrainWorker, HeartbeatWorker, RegisterWorker, ReleaseWorker,
};
pub use workflow::{CreateDefinition, DeleteWorkflow, SetWorkflowEnabled, VersionChoice};
pub use workflow_rejection::WorkflowRejection;
