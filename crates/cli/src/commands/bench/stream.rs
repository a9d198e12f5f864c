//! `flo bench stream`: records that start runs.

use super::load::{Connections, LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::create_workflow;
use super::workers::{BenchWorkers, Setup};
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use bytes::Bytes;
use clap::Args;
use flotilla_client::v1::{
    AppendRecordsRequest, CreateStreamRequest, GetWorkflowRequest, NewRecord, Retention,
};
use flotilla_client::{ActionContext, ActionResult, Client, HandlerError, WorkerBuilder};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

const STREAM: &str = "flo-bench-stream";
const ACTION: &str = "flo-bench-record";
const WORKFLOW: &str = "flo-bench-stream";

const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-stream
version: "1"
retention_ms: 3600000
trigger: {stream: flo-bench-stream, batch_size: 1}
start:
  run: "@actions/flo-bench-record"
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;

/// The stream is trimmed by age, so that repeated benches do not fill it.
const RECORD_AGE_MS_MAX: u64 = 600_000;

/// The indexes of the stages.
const APPEND: usize = 0;
const ARRIVAL: usize = 1;
const STAGES: &[&str] = &["acknowledged append", "append to task"];

/// Measure records that start runs
///
/// Each client appends a record to a stream. The stream's trigger starts a run, a worker of this
/// process runs its only step, and the client waits for the run's end. It measures the time from
/// the append to the end of the run, the time until the append is acknowledged, and the time until
/// the run's task reaches the worker. At the end the trigger must have started exactly one run per
/// record.
///
/// Leaves behind: the definition, the stream and the action, the records for 10 minutes and the
/// runs for an hour.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench stream --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Stream {
    /// Number of partitions of the stream, when it is created
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    partitions: u32,

    /// Payload bytes of each record, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Stream {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, STAGES)?;
        create_stream(bench.client(), self.partitions).await?;
        create_workflow(bench.client(), SOURCE).await?;
        let appends = Arc::new(Appends {
            payloads: Payloads::new(self.payload),
            bench: rand::random(),
            waiting: Mutex::default(),
            appended: AtomicU64::new(0),
            partitions: self.partitions,
        });
        let setup = Setup {
            connections: Connections::open(session, 1)?,
            workers: 1,
            slots: self.load.clients(),
        };
        let bench_workers =
            BenchWorkers::start(setup, |builder| appends.clone().equip(builder)).await?;
        let before = started(bench.client()).await?;
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            ..Conditions::new("stream", "records", "append to completion")
        };
        let measured = bench.load(appends.clone()).await;
        bench_workers.stop().await;
        let (measured, looks) = measured?;
        let after = started(bench.client()).await?;
        bench.conclude(measured, conditions, &looks)?;
        appends.check(after.saturating_sub(before))
    }
}

async fn create_stream(client: &Client, partitions: u32) -> Result<(), Failure> {
    let request = CreateStreamRequest {
        name: STREAM.to_owned(),
        partitions,
        retention: Some(Retention {
            max_age_ms: Some(RECORD_AGE_MS_MAX),
            ..Retention::default()
        }),
        ..CreateStreamRequest::default()
    };
    let hint = format!("`flo stream delete {STREAM}` removes the one of an earlier bench");
    let created = client.create_stream(request).await;
    created.map_err(|error| Failure::from(error).with_hint(hint))?;
    Ok(())
}

/// The number of runs that the workflow's trigger has started.
async fn started(client: &Client) -> Result<u64, Failure> {
    let request = GetWorkflowRequest {
        name: WORKFLOW.to_owned(),
        ..GetWorkflowRequest::default()
    };
    let workflow = client.get_workflow(request).await?;
    let counts = workflow.triggers.iter().map(|trigger| trigger.run_count);
    Ok(counts.sum())
}

/// What the clients and the worker share.
struct Appends {
    payloads: Payloads,
    /// A number that distinguishes the records of this bench.
    bench: u64,
    /// The waiting clients, by record number.
    // A std mutex: it is never held across an await.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Arrival>>>,
    /// The number of acknowledged appends.
    appended: AtomicU64,
    partitions: u32,
}

/// A record's run has reached the worker.
struct Arrival {
    run_id: String,
    at: Instant,
}

/// The content of a record.
#[derive(Debug, Deserialize)]
struct Record {
    n: u64,
    bench: u64,
}

impl Work for Appends {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let (arrived, arrival) = oneshot::channel();
        self.lock().insert(piece.number, arrived);
        let deadline = piece.deadline();
        self.append(piece).await?;
        let Ok(Ok(Arrival { run_id, at })) = timeout_at(deadline, arrival).await else {
            self.lock().remove(&piece.number);
            let message = "expected a record to start a run within --timeout, but it did not";
            return Err(Failure::new(Code::WaitTimeout, message));
        };
        let latency = at.saturating_duration_since(piece.due);
        piece.meter.note_stage(ARRIVAL, latency);
        runs::count_to(piece, &run_id, piece.number).await
    }
}

impl Appends {
    async fn append(&self, piece: &Piece) -> Result<(), Failure> {
        let request = AppendRecordsRequest {
            stream: STREAM.to_owned(),
            records: vec![NewRecord {
                payload: self.payload(piece.number),
                partition_key: self.partition_key(piece.number),
                ..NewRecord::default()
            }],
            ..AppendRecordsRequest::default()
        };
        piece.client.append_records(request).await?;
        self.appended.fetch_add(1, Ordering::Relaxed);
        piece.meter.note_stage(APPEND, piece.due.elapsed());
        Ok(())
    }

    /// A payload with the number of this bench.
    fn payload(&self, number: u64) -> Bytes {
        let input = self.payloads.input(number);
        let mut payload = format!("{{\"bench\":{},", self.bench).into_bytes();
        payload.extend_from_slice(&input[1..]);
        payload.into()
    }

    /// Distributes records over all partitions.
    fn partition_key(&self, number: u64) -> String {
        match self.partitions {
            1 => String::new(),
            _ => number.to_string(),
        }
    }

    fn equip(self: Arc<Self>, builder: WorkerBuilder) -> WorkerBuilder {
        builder.action(ACTION, move |context| {
            std::future::ready(self.arrive(&context))
        })
    }

    /// Handles a task: its run has arrived.
    fn arrive(&self, context: &ActionContext) -> Result<ActionResult, HandlerError> {
        let record: Record = context.json()?;
        let waiting = (record.bench == self.bench)
            .then(|| self.lock().remove(&record.n))
            .flatten();
        if let (Some(waiting), Some(run_id)) = (waiting, context.run_id()) {
            let arrival = Arrival {
                run_id: run_id.to_owned(),
                at: Instant::now(),
            };
            // A client that gave up has already reported it.
            drop(waiting.send(arrival));
        }
        Ok(ActionResult::success_json(format!(
            "{{\"n\":{}}}",
            record.n
        )))
    }

    /// Checks that each record has started one run.
    fn check(&self, started: u64) -> Result<(), Failure> {
        let appended = self.appended.load(Ordering::Relaxed);
        if started == appended {
            return Ok(());
        }
        let message = format!(
            "expected {appended} records to start as many runs, but the trigger has started {started}"
        );
        Err(Failure::new(Code::BenchOutputMismatch, message)
            .with_hint("another bench at the same time, or one that was stopped, adds to them"))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Arrival>>> {
        // Nothing panics midway while holding the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_valid() {
        let parsed = flotilla_dsl::parse(SOURCE);
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    }
}
