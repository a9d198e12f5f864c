//! Starting runs and waiting for their ends, as a user of the SDK does.

use super::load::Piece;
use crate::code::Code;
use crate::failure::Failure;
use bytes::Bytes;
use flotilla_client::v1::{
    ListRunsRequest, RunRow, RunStatus, RunStatusChange, StartRunRequest, WatchRunRequest,
};
use flotilla_client::{Client, ClientError, PublishedName, WatchUpdate};
use futures::TryStreamExt;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

/// The page size of lists of runs, the largest that a node allows.
const PAGE_ROWS: u32 = 1_000;

/// The counter in inputs and outputs.
#[derive(Debug, Deserialize)]
struct Counted {
    n: u64,
}

/// Starts a run and returns its id once the start is acknowledged.
pub(super) async fn start(
    client: &Client,
    workflow: &str,
    input: Bytes,
) -> Result<String, Failure> {
    let request = start_of(workflow, input);
    Ok(client.start_run(request).await?.run_id)
}

/// Starts a run and waits for its completion in the same call, checks that its output has the
/// expected number, and returns when it arrived.
pub(super) async fn carry_out(
    piece: &Piece,
    workflow: &str,
    input: Bytes,
    n: u64,
) -> Result<Instant, Failure> {
    let request = start_of(workflow, input);
    let deadline = Some(piece.deadline());
    let (started, end) = piece.client.start_and_wait(request, deadline).await?;
    let ended = Instant::now();
    check(&started.run_id, end, n)?;
    Ok(ended)
}

/// Waits until an existing run has completed, checks that its output has the expected number, and
/// returns when it arrived.
pub(super) async fn count_to(piece: &Piece, run_id: &str, n: u64) -> Result<Instant, Failure> {
    let Ok(end) = timeout_at(piece.deadline(), last_status(&piece.client, run_id)).await else {
        let message =
            format!("expected run {run_id} to end within --timeout, but it has not ended");
        return Err(Failure::new(Code::WaitTimeout, message));
    };
    let (end, ended) = (end?, Instant::now());
    check(run_id, end, n)?;
    Ok(ended)
}

/// Waits until a run has completed, however long it takes.
pub(super) async fn completed(client: &Client, run_id: &str) -> Result<(), Failure> {
    let end = last_status(client, run_id).await?;
    output(run_id, end).map(drop)
}

/// A page of the waiting runs of a workflow, and the token of the next page.
pub(super) async fn waiting(
    client: &Client,
    workflow: &str,
    page_token: String,
) -> Result<(Vec<RunRow>, String), Failure> {
    let request = ListRunsRequest {
        workflow: workflow.to_owned(),
        status: RunStatus::Waiting.into(),
        limit: PAGE_ROWS,
        page_token,
        ..ListRunsRequest::default()
    };
    let page = client.list_runs(request).await?;
    Ok((page.items, page.next_page_token))
}

fn start_of(workflow: &str, input: Bytes) -> StartRunRequest {
    StartRunRequest {
        workflow: workflow.to_owned(),
        input,
        ..StartRunRequest::default()
    }
}

/// The final status of a run. Does not use [`Client::wait_for_run`], which receives every event.
async fn last_status(client: &Client, run_id: &str) -> Result<RunStatusChange, Failure> {
    let mut updates = client.watch_run(WatchRunRequest {
        run_id: run_id.to_owned(),
        // No event follows this one, so only the status is sent.
        after_seq: u64::MAX,
        ..WatchRunRequest::default()
    });
    let mut last = RunStatusChange::default();
    while let Some(update) = updates.try_next().await.map_err(said)? {
        if let WatchUpdate::Status(change) = update {
            last = change;
        }
    }
    Ok(last)
}

fn check(run_id: &str, end: RunStatusChange, n: u64) -> Result<(), Failure> {
    let output = output(run_id, end)?;
    match serde_json::from_slice::<Counted>(&output) {
        Ok(counted) if counted.n == n => Ok(()),
        Ok(_) | Err(_) => {
            let output = String::from_utf8_lossy(&output);
            let message = format!(
                "expected the output of run {run_id} to have {n} as `n`, but it is {output}"
            );
            Err(Failure::new(Code::BenchOutputMismatch, message))
        }
    }
}

/// The output of a completed run.
fn output(run_id: &str, end: RunStatusChange) -> Result<Bytes, Failure> {
    if end.status() == RunStatus::Completed {
        return Ok(end.output.unwrap_or_default());
    }
    let status = end.status().published_name().unwrap_or_default();
    let detail = end.detail.unwrap_or_default();
    let message = format!("expected run {run_id} to complete, but it ended {status}: {detail}");
    Err(Failure::new(Code::RunNotCompleted, message))
}

fn said(error: ClientError) -> Failure {
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::{Expect, expect};

    fn check_refused(status: RunStatus, output: &str, expected: &Expect) {
        let end = RunStatusChange {
            status: status.into(),
            detail: (status == RunStatus::Failed).then(|| "no room".to_owned()),
            output: Some(Bytes::copy_from_slice(output.as_bytes())),
            ..RunStatusChange::default()
        };
        let failure = check("r", end, 7).expect_err("it is wrong");
        expected.assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_run_that_did_not_count_is_an_error_that_tells_what_it_did() {
        check_refused(
            RunStatus::Completed,
            "{\"n\":8}",
            &expect![[r#"
            error: expected the output of run r to have 7 as `n`, but it is {"n":8}
        "#]],
        );
        check_refused(
            RunStatus::Completed,
            "text",
            &expect![[r#"
            error: expected the output of run r to have 7 as `n`, but it is text
        "#]],
        );
        check_refused(
            RunStatus::Failed,
            "",
            &expect![[r#"
            error: expected run r to complete, but it ended failed: no room
        "#]],
        );
    }

    #[test]
    fn a_run_that_counted_is_right_whatever_else_it_says() {
        let end = RunStatusChange {
            status: RunStatus::Completed.into(),
            output: Some(Bytes::from_static(br#"{"at":1,"n":7}"#)),
            ..RunStatusChange::default()
        };
        assert_eq!(check("r", end, 7), Ok(()));
    }
}
