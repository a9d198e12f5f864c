//! The pure workflow engine: commands in, writes, history and effects out.
//!
//! Given the same entries, [`Engine::apply`] makes the same bytes of state on every machine and in
//! every build (design rule 1): no clock, randomness, I/O, hash-ordered iteration or float.
#![deny(clippy::float_arithmetic)]

pub mod bytes;
pub mod codec;
pub mod definition;
pub mod ids;
pub mod json;
pub mod limits;
pub mod reply;
pub mod store;
pub mod tables;
pub mod view;

mod action;
mod cache;
mod command;
mod dead_letter;
mod decimal;
mod effect;
mod engine;
mod entry;
mod group;
mod heads;
mod history;
mod kv;
mod leadership;
mod namespace;
mod overlay;
mod plan;
mod quarantine;
mod rejection;
mod rejection_code;
mod request;
mod retention;
mod run;
mod schedule;
mod stream;
mod task;
mod timer;
mod trace;
mod trigger;
mod turn;
mod version;
mod worker;
mod workflow;

pub use action::{DeleteAction, InvokeAction, RegisterAction, SetActionEnabled};
pub use command::{Admission, Body, Command, CommandKind, Operation, Subject};
pub use dead_letter::{LetterChoice, PurgeDeadLetters, RequeueDeadLetters};
pub use effect::{Assignment, Effect};
pub use engine::{Applied, Engine};
pub use entry::{Entry, NodeId, Offer, Stamp};
pub use group::{
    AckRecords, AckTimeoutInvalid, CreateGroup, DeleteGroup, GroupRef, GroupSettings, JoinGroup,
    LeaveGroup, NackRecords, NewGroup, TakeId, TakeRecords, TouchRecords,
};
pub use kv::{DeleteKey, SetCondition, SetKey, SweepKeys};
pub use leadership::BeginTerm;
pub use namespace::{CreateNamespace, DeleteNamespace};
pub use plan::{InvalidateCache, ResetPlan};
pub use quarantine::RetryQuarantined;
pub use rejection::Rejection;
pub use rejection_code::{RejectionCode, RejectionKind};
pub use reply::Reply;
pub use request::{RequestId, SweepRequests};
pub use retention::SweepRuns;
pub use run::{CancelRun, DecideChildInput, SignalRun, StartRun, VersionChoice};
pub use schedule::{FireSchedule, PlanSchedule};
pub use stream::{
    AppendRecords, CreateStream, DeleteStream, NewRecord, RecordId, RecordIdInvalid,
    StreamPosition, TrimStream, TrimTo, partition_of,
};
pub use tables::InputVerdict;
pub use task::{
    AcceptTask, AssignTasks, CompleteTask, FailKind, FailTask, FailureOutcome, ReportTask,
    TaskToken, TokenInvalid, TouchTask,
};
pub use timer::FireTimer;
pub use trace::TraceContext;
pub use trigger::{BatchedRecord, FireTrigger, TriggerBatch, input as trigger_input};
pub use turn::Spent;
pub use version::{ENGINE_VERSION, ENGINE_VERSION_FIRST};
pub use worker::{DeregisterWorker, DrainWorker, HeartbeatWorker, RegisterWorker, ReleaseWorker};
pub use workflow::{CreateDefinition, SetWorkflowEnabled};
