//! Converts tasks to the wire format.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::http;
use crate::traces;
use flotilla_api::v1;
use flotilla_engine::definition::Tracking;
use flotilla_engine::json::Json;
use flotilla_engine::{Assignment, view};
use flotilla_leader::Revocation;
use v1::server_message::Message;

/// Reads a task that is being sent to a worker, with its input.
pub(super) fn read(
    context: &CallContext,
    assignment: Assignment,
) -> Result<v1::TaskAssignment, Refusal> {
    let reference = assignment.input;
    let input = context
        .gateway
        .of(&assignment.namespace)
        .read_here(move |reader| view::payload(reader, reference))?;
    Ok(to_wire(context, assignment, input))
}

/// The wire form of a task.
pub(super) fn to_wire(
    context: &CallContext,
    assignment: Assignment,
    input: Json,
) -> v1::TaskAssignment {
    let task_id = assignment.token.task_id();
    let (can_accept, report_timeout_ms) = match assignment.tracking {
        Tracking::Sync => (false, None),
        Tracking::Async { timeout_ms } => (true, timeout_ms),
    };
    v1::TaskAssignment {
        task_token: context.keyring.task_token_text(&assignment.token),
        report_url: http::report_url(context, &task_id),
        task_id,
        traceparent: traces::carried(context, &assignment.token),
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
        report_timeout_ms,
        can_accept,
    }
}

/// Asks a worker to give up a task.
pub(super) fn cancelled(revocation: Revocation) -> Message {
    let Revocation {
        token,
        is_answer_awaited,
    } = revocation;
    let reason = match is_answer_awaited {
        true => "the step was cancelled or took too long",
        false => "the run was cancelled or the lease was lost",
    };
    Message::Cancelled(v1::TaskCancelled {
        task_id: token.task_id(),
        reason: reason.to_owned(),
        answer_awaited: is_answer_awaited,
    })
}
