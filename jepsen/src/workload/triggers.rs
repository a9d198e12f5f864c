//! A trigger starts one run for each record of its stream.

use super::calls::{LOOK_PAUSE, attempt, define, pairs, runs_by_key};
use super::{Session, Workload};
use crate::checker::{Attempt, Violation, exactly_once};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-trigger";
const STREAM: &str = "chaos-records";
const DEFINITION: &str = "kind: Workflow
name: chaos-trigger
version: \"1.0.0\"
trigger: {stream: chaos-records}
start:
  waitForSignal: {type: never, timeoutMs: 3600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";
const PAUSE: Duration = Duration::from_millis(40);
const LOOKS_MAX: usize = 120;

/// A trigger.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    records: AtomicU64,
}

impl Workload for Triggers {
    fn name(&self) -> &'static str {
        "triggers"
    }

    fn prepare(&self, flo: &Flo) {
        let _ = flo.text(&["stream", "create", STREAM, "--partitions", "2"]);
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        2
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let key = format!("record-{}", self.records.fetch_add(1, Ordering::Relaxed));
            let record = v1::NewRecord {
                payload: json!({"key": key}).to_string().into(),
                partition_key: key.clone(),
                ..v1::NewRecord::default()
            };
            let call = session.client.append_records(v1::AppendRecordsRequest {
                stream: STREAM.to_owned(),
                records: vec![record],
                ..v1::AppendRecordsRequest::default()
            });
            let input = json!({"key": key});
            // The history has the outcome.
            let _ = session.call("append", input, call, |_| Value::Null).await;
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            for _ in 0..LOOKS_MAX {
                let workflow = v1::GetWorkflowRequest {
                    name: WORKFLOW.to_owned(),
                    ..v1::GetWorkflowRequest::default()
                };
                let triggers = session.client.get_workflow(workflow).await?.triggers;
                if triggers.iter().any(|trigger| trigger.lag == 0) {
                    break;
                }
                tokio::time::sleep(LOOK_PAUSE).await;
            }
            runs_by_key(&session.client, WORKFLOW).await
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let attempts: Vec<Attempt> = history.of(self.name()).map(attempt).collect();
        exactly_once(&attempts, &pairs(history.final_read(self.name())))
    }
}
