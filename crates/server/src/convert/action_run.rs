//! Converts action runs to messages.

use super::json;
use flotilla_api::v1;
use flotilla_engine::view::{ActionRunRow, ActionRunView};
use flotilla_engine::{ActionRunRecord, ActionRunStatus};

/// Converts an action run.
pub(crate) fn message(view: ActionRunView) -> v1::ActionRun {
    let ActionRunView {
        row: found,
        input,
        output,
    } = view;
    v1::ActionRun {
        input: json(&input),
        output: output.as_ref().map(json),
        ..row(found)
    }
}

/// Converts an action run to a list row, without its payloads.
pub(crate) fn row(row: ActionRunRow) -> v1::ActionRun {
    let ActionRunRow {
        number,
        record,
        step,
    } = row;
    let (run_id, step) = match step {
        Some((run_id, step)) => (Some(run_id.to_string()), step.map(|step| step.to_string())),
        None => (None, None),
    };
    v1::ActionRun {
        action_run_id: number.to_string(),
        action: record.action.to_string(),
        status: status(record.status).into(),
        outcome: record.outcome.as_ref().map(ToString::to_string),
        input: bytes::Bytes::new(),
        output: None,
        attempts: attempts(&record),
        error_code: record.error.as_ref().map(|error| error.code.clone()),
        error_message: record.error.as_ref().map(|error| error.message.clone()),
        worker_id: record.lease.as_ref().map(|lease| lease.worker.to_string()),
        priority: u32::from(record.priority),
        labels: record.labels,
        run_id,
        step,
        created_at_ms: record.created_at_ms,
        started_at_ms: record.started_at_ms,
        completed_at_ms: record.completed_at_ms,
        available_at_ms: None,
        lease_expires_at_ms: record.lease.and_then(|lease| lease.ends_at_ms()),
        redacted: false,
    }
}

fn status(status: ActionRunStatus) -> v1::ActionRunStatus {
    match status {
        ActionRunStatus::Pending => v1::ActionRunStatus::Pending,
        ActionRunStatus::Running => v1::ActionRunStatus::Running,
        ActionRunStatus::Completed => v1::ActionRunStatus::Completed,
        ActionRunStatus::Failed => v1::ActionRunStatus::Failed,
        ActionRunStatus::Cancelled => v1::ActionRunStatus::Cancelled,
        ActionRunStatus::TimedOut => v1::ActionRunStatus::TimedOut,
    }
}

/// The number of attempts that have begun. While a run is pending, its record holds the number of
/// the next attempt.
fn attempts(record: &ActionRunRecord) -> u32 {
    match record.status {
        _ if record.started_at_ms.is_none() => 0,
        ActionRunStatus::Pending => record.attempt - 1,
        ActionRunStatus::Running
        | ActionRunStatus::Completed
        | ActionRunStatus::Failed
        | ActionRunStatus::Cancelled
        | ActionRunStatus::TimedOut => record.attempt,
    }
}
