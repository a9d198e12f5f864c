//! Waiting for the end of a run, as a user of the SDK does.

use super::load::Piece;
use crate::code::Code;
use crate::failure::Failure;
use bytes::Bytes;
use flotilla_client::v1::{RunStatus, StartRunRequest, WatchRunRequest};
use flotilla_client::{ClientError, PublishedName, WatchUpdate};
use futures::TryStreamExt;
use tokio::time::timeout_at;

/// Starts a run, and gives its id once that is acknowledged.
pub(super) async fn start(piece: &Piece, workflow: &str, input: Bytes) -> Result<String, Failure> {
    let request = StartRunRequest {
        workflow: workflow.to_owned(),
        input,
        ..StartRunRequest::default()
    };
    Ok(piece.client.start_run(request).await?.run_id)
}

/// Waits until a run has completed, and gives its output.
pub(super) async fn output(piece: &Piece, run_id: &str) -> Result<Bytes, Failure> {
    match timeout_at(piece.deadline(), end(piece, run_id)).await {
        Ok(output) => output,
        Err(_elapsed) => {
            let message = format!("expected run {run_id} to end within --timeout, but it goes on");
            Err(Failure::new(Code::WaitTimeout, message))
        }
    }
}

async fn end(piece: &Piece, run_id: &str) -> Result<Bytes, Failure> {
    let mut updates = piece.client.watch_run(WatchRunRequest {
        run_id: run_id.to_owned(),
        // No event is behind this one: only the status is sent.
        after_seq: u64::MAX,
        ..WatchRunRequest::default()
    });
    while let Some(update) = updates.try_next().await.map_err(said)? {
        let is_last = update.is_last();
        if let (WatchUpdate::Status(change), true) = (update, is_last) {
            if change.status() == RunStatus::Completed {
                return Ok(change.output.unwrap_or_default());
            }
            let status = change.status().published_name().unwrap_or_default();
            let detail = change.detail.unwrap_or_default();
            let message =
                format!("expected run {run_id} to complete, but it ended {status}: {detail}");
            return Err(Failure::new(Code::RunNotCompleted, message));
        }
    }
    let message = format!("expected run {run_id} to end, but its watch ended first");
    Err(Failure::new(Code::RunNotCompleted, message))
}

fn said(error: ClientError) -> Failure {
    error.into()
}
