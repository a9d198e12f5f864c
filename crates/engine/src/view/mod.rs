//! Views: reads of the state for callers and drivers, over any [`Reader`].
//!
//! Views do not run inside `apply`, so they may be as slow as any read; every list is bounded.

mod access;
mod action;
mod bytes;
mod concurrency;
mod counts;
mod dead_letter;
mod due;
mod event;
mod event_type;
mod group;
mod history;
mod info;
mod kv;
mod namespace;
mod obligation;
mod page;
mod plan;
mod plan_event;
mod quarantine;
mod query;
mod quota;
mod report;
mod reported_step;
mod retention;
mod retry;
mod run;
mod run_attempts;
mod run_definitions;
mod run_detail;
mod schedule;
mod scope_tree;
mod step_output;
mod step_visit;
mod stream;
mod timer;
mod trace;
mod trigger;
mod trigger_firing;
mod visit_events;
mod visit_search;
mod worker;
mod workflow;

pub use crate::run::{LOCKS_CHECK, RUN_OUTPUT_CHECK};
pub use access::{
    access, bindings, bindings_of, blocks, has_grant_in, judge, judge_command, judge_credential,
    token, tokens,
};
pub use action::{
    ActionRunRow, ActionRunView, ActionView, action, action_record, action_run, action_run_row,
    action_runs, actions, module, wasm_actions,
};
pub use counts::{
    LeasedCounts, TasksByAction, WorkerTotals, count_leased, count_quarantined, count_ready,
    count_workers,
};
pub use dead_letter::{DeadLetterView, dead_letter, dead_letter_queue, dead_letters};
pub use due::DueCursor;
pub use event::{EventView, describe};
pub use event_type::EventType;
pub use group::{
    DeliveredView, GroupView, PendingState, PendingView, consumers, delivery, group, groups,
    has_records, pending,
};
pub use history::{HistoryPage, HistoryRange, history};
pub use info::{InfoPage, InfoRange, InfoTaskView, InfoView, infos};
pub use kv::{KeyCursor, KeySelection, KeyView, key, keys};
pub use namespace::{namespace, namespaces};
pub use obligation::{
    LocksCheck, SchemaCheck, SchemaOf, assignment, has_expired_requests, has_ready, has_ready_for,
    locks_check, schema_check, schema_checks, workers_of_other_nodes,
};
pub use page::{Page, PageRange};
pub use plan::{
    BreakerStatus, BreakerView, CacheView, ExecutorView, HealthView, PlanView, RateView, plan,
};
pub use quarantine::{QuarantinedView, find_quarantined, quarantined};
pub use query::{Comparison, Condition, Equality, RunQuery, runs, unknown_attributes};
pub use quota::{DimensionUse, quota, quota_refusal, usage};
pub use report::{FoundReport, ReportPage, ReportedStep, UsageView, report};
pub use reported_step::ReportedAttempt;
pub use retention::{Expired, expired};
pub use retry::{RunOrigin, run_origin};
pub use run::{
    CurrentStep, RunEnding, RunRow, RunSummary, RunView, StepView, WaitingFor, find_run, run,
    run_end, run_summary,
};
pub use run_attempts::RunAttempts;
pub use schedule::{DueSchedule, DueSchedules, ScheduleState, ScheduleView, schedule};
pub use scope_tree::{ScopeKind, ScopeProgressView, ScopeStatus, ScopeView};
pub use step_output::{FoundOutput, StepOutput, StepResultSelector, step_output};
pub use step_visit::{StepVisit, steps_left};
pub use stream::{RecordPage, RecordRange, RecordView, StreamView, records, stream, streams};
pub use timer::{DueTimers, TimerCursor};
pub use trace::{TaskVisit, VisitKey, run_trace, task_visit};
pub use trigger::{DueTriggers, TriggerState, TriggerView, trigger_firings, triggers};
pub use trigger_firing::{InputJudge, ReadRecord, TriggerFiring};
pub use worker::{
    WorkerView, WorkerWithCounts, is_leased, leased_tasks, namespaces_of_node, worker,
    worker_with_counts, workers,
};
pub use workflow::{
    WorkflowView, definition, definition_number, resolve_definition, revisions, workflow, workflows,
};

use crate::json::Json;
use crate::store::{Reader, StoreError};
use crate::tables::{
    Cluster, ClusterRecord, ClusterSettings, ClusterSettingsRecord, PayloadRef, Payloads,
    Quarantine, QuarantinedItem, StoredPayload, join_parts, read,
};

/// The cluster's record: its time, its sequences, its grace.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn cluster(reader: &dyn Reader) -> Result<ClusterRecord, StoreError> {
    Ok(read::<Cluster>(reader, &())?.unwrap_or_default())
}

/// The settings of the cluster (A42).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn cluster_settings(reader: &dyn Reader) -> Result<ClusterSettingsRecord, StoreError> {
    Ok(read::<ClusterSettings>(reader, &())?.unwrap_or_default())
}

/// A payload; `null` when its owner is gone.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn payload(reader: &dyn Reader, reference: PayloadRef) -> Result<Json, StoreError> {
    let read = |reference| read::<Payloads>(reader, &reference);
    let parts = match read(reference)? {
        Some(StoredPayload::Text(text)) => return Ok(text),
        Some(StoredPayload::Parts(parts)) => parts,
        None => return Ok(Json::null()),
    };
    match read(PayloadRef::input_of(reference.owner))? {
        Some(StoredPayload::Text(input)) => Ok(join_parts(&parts, &input)),
        Some(StoredPayload::Parts(_)) | None => Ok(Json::null()),
    }
}

/// Whether an item is quarantined (design rule 10).
fn is_quarantined(reader: &dyn Reader, subject: QuarantinedItem) -> Result<bool, StoreError> {
    Ok(read::<Quarantine>(reader, &subject)?.is_some())
}
