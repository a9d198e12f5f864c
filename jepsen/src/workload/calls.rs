//! Calls and reads that several workloads share.

use super::Session;
use crate::checker::Attempt;
use crate::history::{History, Operation};
use flotilla_client::{Client, ClientError, v1};
use flotilla_tests::Flo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The interval between checks whether runs have ended.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// Starts a run with an idempotency key, and the same key as its input.
pub(super) async fn start(
    session: &Session,
    workflow: &str,
    key: &str,
) -> Result<String, ClientError> {
    let request = v1::StartRunRequest {
        workflow: workflow.to_owned(),
        input: json!({"key": key}).to_string().into(),
        idempotency_key: key.to_owned(),
        ..v1::StartRunRequest::default()
    };
    let call = session.client.start_run(request);
    let started = session
        .call(
            "start",
            json!({"key": key}),
            call,
            |started| json!({"made": started.run_id}),
        )
        .await;
    Ok(started?.run_id)
}

/// The attempts of the operations with a key.
pub(super) fn attempt(operation: &Operation) -> Attempt {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Attempt {
        key: text(&operation.input["key"]).unwrap_or_default(),
        outcome: operation.outcome,
        made: text(&operation.output["made"]),
    }
}

/// The attempts of a workload at the operation with a name.
pub(super) fn attempts(history: &History, workload: &str, name: &str) -> Vec<Attempt> {
    let operations = history.of(workload);
    operations
        .filter(|operation| operation.name == name)
        .map(attempt)
        .collect()
}

/// Pairs of a key and what was made for it, as in a final read.
pub(super) fn pairs(value: &Value) -> Vec<(String, String)> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// Stores a definition.
pub(super) fn define(flo: &Flo, definition: &str) {
    let answer = flo.run_with_input(&["workflow", "create", "-f", "-"], definition.as_bytes());
    let _ = answer.success();
}

/// All runs of a workflow, page by page.
pub(super) async fn runs(client: &Client, workflow: &str) -> Result<Vec<v1::RunRow>, ClientError> {
    let mut rows = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRunsRequest {
            workflow: workflow.to_owned(),
            limit: 200,
            page_token,
            ..v1::ListRunsRequest::default()
        };
        let page = client.list_runs(request).await?;
        rows.extend(page.items);
        if page.next_page_token.is_empty() {
            return Ok(rows);
        }
        page_token = page.next_page_token;
    }
}

/// A run.
pub(super) async fn run(client: &Client, run_id: &str) -> Result<v1::Run, ClientError> {
    let request = v1::GetRunRequest {
        run_id: run_id.to_owned(),
        ..v1::GetRunRequest::default()
    };
    client.get_run(request).await
}

/// The events of a run's history.
pub(super) async fn events(client: &Client, run_id: &str) -> Result<Vec<v1::Event>, ClientError> {
    let request = v1::GetHistoryRequest {
        run_id: run_id.to_owned(),
        limit: 1_000,
        ..v1::GetHistoryRequest::default()
    };
    Ok(client.get_history(request).await?.events)
}

/// The runs of a workflow, each with the key in its input, as [`pairs`] reads them.
pub(super) async fn runs_by_key(client: &Client, workflow: &str) -> Result<Value, ClientError> {
    let mut found = Vec::new();
    for row in runs(client, workflow).await? {
        let input = input(client, &row.run_id).await?;
        found.push((input["key"].clone(), row.run_id));
    }
    Ok(json!(found))
}

/// The input of a run.
async fn input(client: &Client, run_id: &str) -> Result<Value, ClientError> {
    let run = run(client, run_id).await?;
    Ok(serde_json::from_slice(&run.input).unwrap_or_default())
}

/// Waits until all runs of a workflow have ended, for a limited number of checks: the checker judges those that are
/// still open. Returns all of them.
pub(super) async fn await_end(
    session: &Session,
    workflow: &str,
    looks_max: usize,
) -> Result<Vec<v1::RunRow>, ClientError> {
    let mut rows = runs(&session.client, workflow).await?;
    for _ in 1..looks_max {
        if rows.iter().all(|row| row.completed_at_ms.is_some()) {
            break;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
        rows = runs(&session.client, workflow).await?;
    }
    Ok(rows)
}

/// Waits as [`await_end`] does, and reads each of the runs, by its id.
pub(super) async fn read_ended<T: Serialize>(
    session: &Session,
    workflow: &str,
    looks_max: usize,
    read: impl AsyncFn(&Session, &str) -> Result<T, ClientError>,
) -> Result<Value, ClientError> {
    let mut found = Vec::new();
    for row in await_end(session, workflow, looks_max).await? {
        found.push(read(session, &row.run_id).await?);
    }
    Ok(json!(found))
}

/// Cancels a run. The history has no operation for it.
pub(super) async fn cancel(session: &Session, run_id: String, force: bool) {
    let request = v1::CancelRunRequest {
        run_id,
        force,
        ..v1::CancelRunRequest::default()
    };
    // The checker judges what became of the run.
    let _ = session.client.cancel_run(request).await;
}

/// Cancels a run, and records the call as `cancel`, with whether the end of the run was still open.
pub(super) async fn cancel_and_record(session: &Session, run_id: String, key: &str) {
    let request = v1::CancelRunRequest {
        run_id,
        ..v1::CancelRunRequest::default()
    };
    let call = async {
        match session.client.cancel_run(request).await {
            Ok(_) => Ok(true),
            Err(error) if ["run_ended", "run_ending"].contains(&error.code()) => Ok(false),
            Err(error) => Err(error),
        }
    };
    let input = json!({"key": key});
    let show = |is_accepted: &bool| json!({"is_accepted": is_accepted});
    // The checker judges what became of the run.
    let _ = session.call("cancel", input, call, show).await;
}

/// The keys of the runs that clients have tried to cancel.
pub(super) struct Cancels {
    attempted: BTreeSet<String>,
    accepted: BTreeSet<String>,
}

impl Cancels {
    /// What [`cancel_and_record`] has recorded.
    pub(super) fn of(history: &History, workload: &str) -> Self {
        let mut cancels = Self {
            attempted: BTreeSet::new(),
            accepted: BTreeSet::new(),
        };
        for operation in history.of(workload).filter(|one| one.name == "cancel") {
            let Attempt { key, .. } = attempt(operation);
            if operation.output["is_accepted"] == true {
                cancels.accepted.insert(key.clone());
            }
            cancels.attempted.insert(key);
        }
        cancels
    }

    /// Whether a run may have ended with this status: `cancelled` only if a client tried to cancel it, another one only if
    /// no cancel was accepted.
    pub(super) fn allow(&self, key: &str, status: &str) -> bool {
        match status {
            "RUN_STATUS_CANCELLED" => self.attempted.contains(key),
            _ => !self.accepted.contains(key),
        }
    }
}

/// What the final read of a workload has found; the default if it is missing or of another form.
pub(super) fn found_in<T: DeserializeOwned + Default>(history: &History, workload: &str) -> T {
    serde_json::from_value(history.final_read(workload).clone()).unwrap_or_default()
}

/// The output of a run; null without one.
pub(super) fn output(run: &v1::Run) -> Value {
    let output = run.output.as_deref();
    let output = output.and_then(|output| serde_json::from_slice(output).ok());
    output.unwrap_or_default()
}

/// The entries of the log that created a run, began it and ended it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunEntries {
    /// The index of an entry, and the position in the order of starts.
    pub(super) created: (u64, u64),
    pub(super) began: Option<u64>,
    pub(super) ended: Option<u64>,
}

/// Reads the entries of a run from its history.
pub(super) async fn entries(client: &Client, run_id: &str) -> Result<RunEntries, ClientError> {
    let events = events(client, run_id).await?;
    let first = |names: &[&str]| {
        let mut events = events.iter();
        let found = events.find(|event| names.contains(&event.r#type.as_str()));
        found.map(|event| event.raft_index)
    };
    let number = run_id.strip_prefix("wfrun-").map(str::parse);
    Ok(RunEntries {
        created: (
            first(&["workflow_started"]).unwrap_or_default(),
            number.and_then(Result::ok).unwrap_or_default(),
        ),
        began: first(&["step_started"]),
        ended: first(&[
            "workflow_completed",
            "workflow_failed",
            "workflow_cancelled",
        ]),
    })
}
