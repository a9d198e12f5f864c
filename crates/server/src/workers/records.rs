//! Workers on the wire: registrations in, the manual's records out (A20).

use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::RegisterWorker;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::limits::{LABELS_MAX, PROCESSES_MAX};
use flotilla_engine::tables::{Process, ProcessKind, WorkerKind};
use flotilla_engine::view::WorkerView;

/// Tasks at once when a worker does not say (the manual's default).
const CONCURRENCY_DEFAULT: u32 = 10;

/// Checks a registration.
pub(super) fn registration(asked: v1::RegisterRequest) -> Result<RegisterWorker, Refusal> {
    let kind = match asked.worker_type() {
        v1::WorkerType::Unspecified | v1::WorkerType::Action => WorkerKind::Action,
        v1::WorkerType::Stream => WorkerKind::Stream,
    };
    bounded("processes", asked.processes.len(), PROCESSES_MAX)?;
    bounded("labels", asked.labels.len(), LABELS_MAX)?;
    let metadata = match asked.metadata.as_ref() {
        [] => None,
        text => Some(request::json(text, "metadata", "null")?),
    };
    let concurrency = Some(asked.max_concurrency).filter(|concurrency| *concurrency > 0);
    Ok(RegisterWorker {
        worker_id: request::name(WorkerId::new(asked.worker_id.clone()))?,
        incarnation: asked.incarnation,
        kind,
        max_concurrency: concurrency.unwrap_or(CONCURRENCY_DEFAULT),
        processes: asked.processes.iter().map(process).collect(),
        labels: asked.labels,
        metadata,
        machine_id: Some(asked.machine_id).filter(|machine_id| !machine_id.is_empty()),
        node: None,
    })
}

fn bounded(field: &'static str, count: usize, count_max: usize) -> Result<(), Refusal> {
    if count <= count_max {
        return Ok(());
    }
    Err(Refusal::invalid(
        field,
        format!("expected at most {count_max} {field}, but found {count}"),
    ))
}

fn process(asked: &v1::Process) -> Process {
    let kind = match asked.kind() {
        v1::ProcessKind::Unspecified | v1::ProcessKind::Action => ProcessKind::Action,
        v1::ProcessKind::StreamConsumer => ProcessKind::StreamConsumer,
    };
    Process {
        name: asked.name.clone(),
        kind,
    }
}

/// The wire form of a worker's status.
pub(super) fn status(worker: &WorkerView) -> v1::WorkerStatus {
    match worker.activity.status() {
        "unhealthy" => v1::WorkerStatus::Unhealthy,
        "draining" => v1::WorkerStatus::Draining,
        "idle" => v1::WorkerStatus::Idle,
        _ => v1::WorkerStatus::Active,
    }
}

/// The manual's WorkerRecord.
pub(super) fn record(namespace: &Namespace, worker: WorkerView) -> v1::WorkerRecord {
    let status = status(&worker);
    let WorkerView {
        id,
        record,
        activity,
    } = worker;
    let worker_type = match record.kind {
        WorkerKind::Action => v1::WorkerType::Action,
        WorkerKind::Stream => v1::WorkerType::Stream,
    };
    let processes = record.processes.iter().map(|process| {
        let counted = activity
            .processes
            .get(&process.name)
            .cloned()
            .unwrap_or_default();
        let kind = match process.kind {
            ProcessKind::Action => v1::ProcessKind::Action,
            ProcessKind::StreamConsumer => v1::ProcessKind::StreamConsumer,
        };
        v1::ProcessRecord {
            name: process.name.clone(),
            kind: kind.into(),
            run_count: counted.run_count,
            fail_count: counted.fail_count,
            last_run_at_ms: counted.last_run_at_ms,
        }
    });
    v1::WorkerRecord {
        worker_id: id.to_string(),
        worker_type: worker_type.into(),
        status: status.into(),
        namespace: namespace.to_string(),
        max_concurrency: record.max_concurrency,
        current_load: activity.load,
        tasks_completed: activity.tasks_completed,
        tasks_failed: activity.tasks_failed,
        registered_at_ms: record.registered_at_ms,
        last_heartbeat_at_ms: activity.heard_at_ms,
        machine_id: record.machine_id.clone(),
        metadata: record
            .metadata
            .as_ref()
            .map(|json| json.as_str().to_owned().into()),
        processes: processes.collect(),
        labels: record.labels.clone(),
    }
}
