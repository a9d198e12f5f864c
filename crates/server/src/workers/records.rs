//! Workers on the wire: registrations in, the manual's WorkerRecord out (A20).

use super::handshake::bounded;
use crate::errors::Refusal;
use crate::limits::{CONCURRENCY_DEFAULT, PROCESS_NAME_BYTES_MAX};
use crate::request;
use flotilla_api::v1;
use flotilla_engine::RegisterWorker;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::limits::PROCESSES_MAX;
use flotilla_engine::view::{WorkerView, WorkerWithCounts};
use flotilla_engine::{Process, ProcessKind, WorkerActivityRecord, WorkerStatus, WorkerType};

/// Validates a registration.
pub(super) fn registration(request: v1::RegisterRequest) -> Result<RegisterWorker, Refusal> {
    let kind = match request.worker_type() {
        v1::WorkerType::Unspecified | v1::WorkerType::Action => WorkerType::Action,
        v1::WorkerType::Stream => WorkerType::Stream,
    };
    bounded("processes", request.processes.len(), PROCESSES_MAX)?;
    for process in &request.processes {
        short("processes", &process.name)?;
    }
    short("machine_id", &request.machine_id)?;
    request::labels(&request.labels)?;
    let metadata = match request.metadata.as_ref() {
        [] => None,
        text => Some(request::json(text, "metadata", "null")?),
    };
    let concurrency = Some(request.max_concurrency).filter(|concurrency| *concurrency > 0);
    Ok(RegisterWorker {
        worker_id: request::name("worker_id", WorkerId::new(request.worker_id.clone()))?,
        incarnation: request.incarnation,
        kind,
        max_concurrency: concurrency.unwrap_or(CONCURRENCY_DEFAULT),
        processes: request.processes.iter().map(process).collect(),
        labels: request.labels,
        metadata,
        machine_id: Some(request.machine_id).filter(|machine_id| !machine_id.is_empty()),
        node: None,
    })
}

/// Refuses names that are too long.
fn short(field: &'static str, name: &str) -> Result<(), Refusal> {
    if name.len() <= PROCESS_NAME_BYTES_MAX {
        return Ok(());
    }
    let bytes = name.len();
    let message =
        format!("expected a name of at most {PROCESS_NAME_BYTES_MAX} bytes, but it has {bytes}");
    Err(Refusal::invalid(field, message))
}

fn process(request: &v1::Process) -> Process {
    let kind = match request.kind() {
        v1::ProcessKind::Unspecified | v1::ProcessKind::Action => ProcessKind::Action,
        v1::ProcessKind::StreamConsumer => ProcessKind::StreamConsumer,
    };
    Process {
        name: request.name.clone(),
        kind,
    }
}

/// The number of tasks that the worker holds. For actions it is always known; a stream worker
/// reports it with its heartbeats.
fn load(kind: WorkerType, activity: &WorkerActivityRecord) -> u32 {
    match kind {
        WorkerType::Action => activity.leases_count,
        WorkerType::Stream => activity.load,
    }
}

/// The manual's status; `idle` is derived (A20).
fn status(activity: &WorkerActivityRecord, load: u32) -> v1::WorkerStatus {
    match activity.status {
        WorkerStatus::Unhealthy | WorkerStatus::UnhealthyDraining => v1::WorkerStatus::Unhealthy,
        WorkerStatus::Draining => v1::WorkerStatus::Draining,
        WorkerStatus::Healthy if load == 0 => v1::WorkerStatus::Idle,
        WorkerStatus::Healthy => v1::WorkerStatus::Active,
    }
}

/// The manual's WorkerRecord.
pub(super) fn record(namespace: &Namespace, found: WorkerWithCounts) -> v1::WorkerRecord {
    let WorkerWithCounts { worker, counts } = found;
    let WorkerView {
        id,
        record,
        activity,
    } = worker;
    let load = load(record.kind, &activity);
    let worker_type = match record.kind {
        WorkerType::Action => v1::WorkerType::Action,
        WorkerType::Stream => v1::WorkerType::Stream,
    };
    let processes = record.processes.iter().map(|process| {
        let counted = counts.get(process).cloned().unwrap_or_default();
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
        status: status(&activity, load).into(),
        namespace: namespace.to_string(),
        max_concurrency: record.max_concurrency,
        current_load: load,
        tasks_completed: activity.tasks_completed,
        tasks_failed: activity.tasks_failed,
        registered_at_ms: record.registered_at_ms,
        last_heartbeat_at_ms: activity.last_heartbeat_at_ms,
        machine_id: record.machine_id.clone(),
        metadata: record
            .metadata
            .as_ref()
            .map(|json| json.as_str().to_owned().into()),
        processes: processes.collect(),
        labels: record.labels.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::WorkerNumber;
    use flotilla_engine::{LeaseWatch, ProcessRecord, WorkerOwner, WorkerRecord};
    use std::collections::BTreeMap;

    fn request() -> v1::RegisterRequest {
        v1::RegisterRequest {
            worker_id: "w".to_owned(),
            ..v1::RegisterRequest::default()
        }
    }

    fn activity(status: WorkerStatus, load: u32) -> WorkerActivityRecord {
        WorkerActivityRecord {
            number: WorkerNumber(1),
            status,
            load,
            last_heartbeat_at_ms: 0,
            silence_due_ms: None,
            leases_count: 0,
            lease_watch: LeaseWatch::default(),
            tasks_completed: 0,
            tasks_failed: 0,
        }
    }

    #[test]
    fn a_registration_is_bounded_in_processes_labels_and_names() {
        assert_eq!(registration(request()).unwrap().max_concurrency, 10);
        let process = |name: String| v1::Process {
            name,
            ..v1::Process::default()
        };
        let long = "x".repeat(PROCESS_NAME_BYTES_MAX + 1);
        let labels =
            |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let wrong = [
            v1::RegisterRequest {
                processes: vec![process("p".to_owned()); PROCESSES_MAX + 1],
                ..request()
            },
            v1::RegisterRequest {
                processes: vec![process(long.clone())],
                ..request()
            },
            v1::RegisterRequest {
                machine_id: long.clone(),
                ..request()
            },
            v1::RegisterRequest {
                labels: labels("zone", &long),
                ..request()
            },
            v1::RegisterRequest {
                labels: labels(&long, "a"),
                ..request()
            },
        ];
        for request in wrong {
            assert!(registration(request).is_err_and(|refusal| !refusal.may_succeed_later()));
        }
    }

    /// A worker with this registration, with finished tasks and two held ones.
    fn counted(registered: RegisterWorker) -> WorkerWithCounts {
        let consumer = ProcessRecord {
            run_count: 3,
            fail_count: 1,
            last_run_at_ms: Some(70),
        };
        let counts = BTreeMap::from([(registered.processes[0].clone(), consumer)]);
        let worker = WorkerView {
            id: registered.worker_id,
            record: WorkerRecord {
                incarnation: registered.incarnation,
                replaced: Vec::new(),
                kind: registered.kind,
                max_concurrency: registered.max_concurrency,
                processes: registered.processes,
                labels: registered.labels,
                metadata: registered.metadata,
                machine_id: registered.machine_id,
                node: None,
                owner: WorkerOwner::Anyone,
                registered_at_ms: 50,
            },
            activity: WorkerActivityRecord {
                last_heartbeat_at_ms: 80,
                tasks_completed: 3,
                tasks_failed: 1,
                ..activity(WorkerStatus::Healthy, 2)
            },
        };
        WorkerWithCounts { worker, counts }
    }

    #[test]
    fn a_registration_comes_back_as_the_manuals_record() {
        let process = |name: &str, kind: v1::ProcessKind| v1::Process {
            name: name.to_owned(),
            kind: kind.into(),
        };
        let request = v1::RegisterRequest {
            worker_type: v1::WorkerType::Stream.into(),
            max_concurrency: 4,
            processes: vec![
                process("events/processors", v1::ProcessKind::StreamConsumer),
                process("charge", v1::ProcessKind::Action),
            ],
            labels: BTreeMap::from([("zone".to_owned(), "eu".to_owned())]),
            metadata: r#"{"version":"2"}"#.into(),
            machine_id: "rack-7".to_owned(),
            ..request()
        };
        let worker = counted(registration(request.clone()).unwrap());
        let shown = record(&Namespace::default_namespace(), worker);
        assert_eq!(shown.worker_type(), v1::WorkerType::Stream);
        assert_eq!(shown.namespace, "default");
        assert_eq!((shown.max_concurrency, shown.current_load), (4, 2));
        assert_eq!((shown.tasks_completed, shown.tasks_failed), (3, 1));
        assert_eq!(
            (shown.registered_at_ms, shown.last_heartbeat_at_ms),
            (50, 80)
        );
        assert_eq!(shown.machine_id.as_deref(), Some("rack-7"));
        assert_eq!(shown.metadata, Some(request.metadata));
        assert_eq!(shown.labels, request.labels);
        let [consumer, action] = shown.processes.as_slice() else {
            panic!("expected two processes: {shown:?}");
        };
        assert_eq!(
            (consumer.name.as_str(), consumer.kind()),
            ("events/processors", v1::ProcessKind::StreamConsumer)
        );
        assert_eq!(
            (
                consumer.run_count,
                consumer.fail_count,
                consumer.last_run_at_ms
            ),
            (3, 1, Some(70))
        );
        assert_eq!(
            (action.kind(), action.run_count, action.last_run_at_ms),
            (v1::ProcessKind::Action, 0, None)
        );
    }

    #[test]
    fn metadata_is_json_or_nothing() {
        let of = |metadata: &'static str| {
            registration(v1::RegisterRequest {
                metadata: metadata.into(),
                ..request()
            })
        };
        assert_eq!(of("").unwrap().metadata, None);
        assert!(of("{").is_err_and(|refusal| !refusal.may_succeed_later()));
    }

    #[test]
    fn a_silent_worker_is_unhealthy_even_while_it_drains_and_idle_is_derived() {
        let said = |at, load| status(&activity(at, load), load);
        let silent = said(WorkerStatus::UnhealthyDraining, 1);
        assert_eq!(silent, v1::WorkerStatus::Unhealthy);
        let draining = said(WorkerStatus::Draining, 0);
        assert_eq!(draining, v1::WorkerStatus::Draining);
        assert_eq!(said(WorkerStatus::Healthy, 0), v1::WorkerStatus::Idle);
        assert_eq!(said(WorkerStatus::Healthy, 1), v1::WorkerStatus::Active);
    }

    #[test]
    fn the_load_of_an_action_worker_does_not_wait_for_its_heartbeat() {
        let mut busy = activity(WorkerStatus::Healthy, 7);
        assert_eq!(load(WorkerType::Action, &busy), 0);
        busy.leases_count = 1;
        assert_eq!(load(WorkerType::Action, &busy), 1);
        assert_eq!(load(WorkerType::Stream, &busy), 7);
    }
}
