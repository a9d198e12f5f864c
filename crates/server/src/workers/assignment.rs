//! Tasks on the wire.

use super::poll::ToWorker;
use flotilla_api::v1;
use flotilla_engine::Assignment;
use flotilla_engine::json::Json;
use v1::server_message::Message;

/// The wire form of a task.
pub(super) fn to_wire(assignment: Assignment, input: Json) -> v1::TaskAssignment {
    v1::TaskAssignment {
        task_token: assignment.token.to_string(),
        task_id: assignment.token.task_id(),
        action_run_id: assignment.token.action_run.to_string(),
        action: assignment.action.to_string(),
        input: input.as_str().to_owned().into(),
        attempt: assignment.token.attempt,
        created_at_ms: assignment.created_at_ms,
        lease_ms: assignment.timeout_ms,
        lease_expires_at_ms: assignment.lease_expires_at_ms,
        run_id: assignment.run_id.map(|run_id| run_id.to_string()),
        step: assignment.step.map(|step| step.to_string()),
        labels: assignment.labels,
    }
}

/// The stream's form of what a poll delivers.
pub(super) fn message(message: ToWorker) -> v1::ServerMessage {
    let message = match message {
        ToWorker::Task(assignment, input) => Message::Task(to_wire(*assignment, input)),
        ToWorker::Revoked(token) => Message::Cancelled(v1::TaskCancelled {
            task_token: token.to_string(),
            reason: "the run was cancelled or the lease was lost".to_owned(),
        }),
        ToWorker::Draining => Message::Draining(v1::Draining {}),
    };
    v1::ServerMessage {
        message: Some(message),
    }
}
