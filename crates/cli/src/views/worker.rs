//! A worker in the registry: the manual's WorkerRecord.

use super::process::ProcessView;
use super::{json, name};
use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A worker.
#[derive(Debug, Serialize)]
pub(crate) struct WorkerView {
    worker_id: String,
    worker_type: String,
    status: String,
    namespace: String,
    max_concurrency: u32,
    current_load: u32,
    tasks_completed: u64,
    tasks_failed: u64,
    registered_at_ms: u64,
    last_heartbeat_at_ms: u64,
    machine_id: Option<String>,
    metadata: Value,
    processes: Vec<ProcessView>,
    labels: BTreeMap<String, String>,
}

impl From<v1::WorkerRecord> for WorkerView {
    fn from(worker: v1::WorkerRecord) -> Self {
        Self {
            worker_type: name(worker.worker_type()),
            status: name(worker.status()),
            worker_id: worker.worker_id,
            namespace: worker.namespace,
            max_concurrency: worker.max_concurrency,
            current_load: worker.current_load,
            tasks_completed: worker.tasks_completed,
            tasks_failed: worker.tasks_failed,
            registered_at_ms: worker.registered_at_ms,
            last_heartbeat_at_ms: worker.last_heartbeat_at_ms,
            machine_id: worker.machine_id,
            metadata: json::optional_value(worker.metadata.as_deref()),
            processes: worker.processes.into_iter().map(Into::into).collect(),
            labels: worker.labels,
        }
    }
}

impl Row for WorkerView {
    const HEADINGS: &'static [&'static str] = &[
        "WORKER",
        "STATUS",
        "LOAD",
        "COMPLETED",
        "FAILED",
        "LAST HEARTBEAT",
        "PROCESSES",
    ];

    fn cells(&self) -> Vec<String> {
        let processes: Vec<&str> = self.processes.iter().map(|p| p.name.as_str()).collect();
        vec![
            self.worker_id.clone(),
            self.status.clone(),
            format!("{}/{}", self.current_load, self.max_concurrency),
            self.tasks_completed.to_string(),
            self.tasks_failed.to_string(),
            time::show(self.last_heartbeat_at_ms),
            processes.join(","),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_worker_has_the_fields_of_the_manuals_tables() {
        let process = v1::ProcessRecord {
            name: "charge".to_owned(),
            kind: v1::ProcessKind::Action.into(),
            run_count: 8,
            fail_count: 1,
            last_run_at_ms: Some(70),
        };
        let view = WorkerView::from(v1::WorkerRecord {
            worker_id: "host-1".to_owned(),
            worker_type: v1::WorkerType::Action.into(),
            status: v1::WorkerStatus::Idle.into(),
            namespace: "default".to_owned(),
            max_concurrency: 10,
            tasks_completed: 8,
            tasks_failed: 1,
            registered_at_ms: 50,
            last_heartbeat_at_ms: 80,
            machine_id: Some("host".to_owned()),
            processes: vec![process],
            ..v1::WorkerRecord::default()
        });
        expect![[r#"{"worker_id":"host-1","worker_type":"action","status":"idle","namespace":"default","max_concurrency":10,"current_load":0,"tasks_completed":8,"tasks_failed":1,"registered_at_ms":50,"last_heartbeat_at_ms":80,"machine_id":"host","metadata":null,"processes":[{"name":"charge","kind":"action","run_count":8,"fail_count":1,"last_run_at_ms":70}],"labels":{}}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
