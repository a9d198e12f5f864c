//! Converts reports to commands: completions, acceptances, failures, touches and heartbeats (A4,
//! A5, A20).

use super::handshake::bounded;
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::limits::{REPORT_DEADLINE, REPORTS_BATCH_MAX};
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::LEASE_MS_MAX;
use flotilla_engine::{
    AcceptTask, Body, CompleteTask, FailKind, FailTask, FailureOutcome, HeartbeatWorker, Reply,
    TaskToken, TouchTask, reply,
};
use flotilla_leader::WorkerKey;
use futures::future::join_all;
use tokio::time::Instant;
use v1::worker_message::Message as Inbound;

/// Submits a report from a worker's stream.
pub(super) async fn submit_report(
    context: CallContext,
    key: WorkerKey,
    incarnation: u64,
    inbound: Inbound,
) -> v1::ItemResult {
    let body = match inbound {
        Inbound::Completion(completion) => completion_body(&context, completion),
        Inbound::Acceptance(acceptance) => acceptance_body(&context, &acceptance),
        Inbound::Failure(failure) => failure_body(&context, failure),
        Inbound::Touch(touch) => touch_body(&context, &touch),
        Inbound::Heartbeat(load) => Ok(Body::HeartbeatWorker(HeartbeatWorker {
            worker_id: key.worker,
            incarnation,
            load: load.current_load,
        })),
        Inbound::Hello(_) | Inbound::Slots(_) | Inbound::Completions(_) => Err(Refusal::invalid(
            "message",
            "expected one report, but found slots, a hello or several",
        )),
    };
    submit(
        &context,
        key.namespace,
        body,
        Instant::now() + REPORT_DEADLINE,
    )
    .await
}

/// Submits the items of a batch together: they travel in one entry.
pub(super) async fn submit_all(
    context: &CallContext,
    namespace: &str,
    bodies: Vec<Result<Body, Refusal>>,
    deadline: Instant,
) -> Result<Vec<v1::ItemResult>, Refusal> {
    let namespace = request::namespace(namespace)?;
    bounded("reports", bodies.len(), REPORTS_BATCH_MAX)?;
    let submitted = bodies
        .into_iter()
        .map(|body| submit(context, namespace.clone(), body, deadline));
    Ok(join_all(submitted).await)
}

/// Submits one report and returns its result.
async fn submit(
    context: &CallContext,
    namespace: Namespace,
    body: Result<Body, Refusal>,
    deadline: Instant,
) -> v1::ItemResult {
    let reply = match body {
        Ok(body) => {
            context
                .gateway
                .submit(body.into_command(namespace), deadline)
                .await
        }
        Err(refusal) => Err(refusal),
    };
    match reply {
        Ok(Reply::LeaseExtended(reply::LeaseExtended { expires_at_ms })) => v1::ItemResult {
            error: None,
            lease_expires_at_ms: Some(expires_at_ms),
        },
        Ok(_) => v1::ItemResult::default(),
        Err(refusal) => v1::ItemResult {
            error: Some(refusal.item_error()),
            lease_expires_at_ms: None,
        },
    }
}

/// The command of a completion.
pub(super) fn completion_body(
    context: &CallContext,
    completion: v1::TaskCompletion,
) -> Result<Body, Refusal> {
    let (delay_ms, not_before_ms) = (completion.delay_ms, completion.not_before_ms);
    let token = token(context, &completion.task_token)?;
    let gateway = context.gateway.of_task(&token);
    Ok(Body::CompleteTask(CompleteTask {
        token,
        outcome: request::outcome(completion.outcome)?,
        output: request::json(&completion.output, "output", "null")?,
        not_before: request::not_before(&gateway, delay_ms, not_before_ms)?,
        state_patch: request::state_patch(&completion.state_patch)?,
        usage: request::usage(&completion.usage)?,
    }))
}

/// The command of an acceptance (W38).
pub(super) fn acceptance_body(
    context: &CallContext,
    acceptance: &v1::TaskAcceptance,
) -> Result<Body, Refusal> {
    Ok(Body::AcceptTask(AcceptTask {
        token: token(context, &acceptance.task_token)?,
    }))
}

/// The command of a failure.
pub(super) fn failure_body(
    context: &CallContext,
    failure: v1::TaskFailure,
) -> Result<Body, Refusal> {
    let kind = match failure.kind() {
        v1::FailKind::Unspecified | v1::FailKind::Retry => FailKind::Retry,
        v1::FailKind::NoRetry => FailKind::NoRetry,
        v1::FailKind::NonRetryable => FailKind::NonRetryable,
    };
    let token = token(context, &failure.task_token)?;
    let gateway = context.gateway.of_task(&token);
    Ok(Body::FailTask(FailTask {
        token,
        kind,
        code: Some(failure.code).filter(|code| !code.is_empty()),
        message: failure.message,
        outcome: FailureOutcome::Failure,
        not_before: request::not_before(&gateway, failure.delay_ms, failure.not_before_ms)?,
        state_patch: request::state_patch(&failure.state_patch)?,
        usage: request::usage(&failure.usage)?,
    }))
}

/// The command of a touch.
pub(super) fn touch_body(context: &CallContext, touch: &v1::TaskTouch) -> Result<Body, Refusal> {
    request::within("extend_ms", touch.extend_ms, 1..=LEASE_MS_MAX)?;
    Ok(Body::TouchTask(TouchTask {
        token: token(context, &touch.task_token)?,
        extend_ms: touch.extend_ms,
    }))
}

/// The token that a worker shows. Its credential is the proof of its right, so the token needs no MAC; a wrong one is refused.
pub(super) fn token(context: &CallContext, text: &str) -> Result<TaskToken, Refusal> {
    Ok(context.keyring.verify_task_token(text)?.token)
}
