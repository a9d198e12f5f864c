//! Signals (W19) and cancels (W18) open runs, and decides about their approvals (W61).

use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Comment, ScopePathText, SignalId, SignalType, StepName};
use flotilla_engine::{CancelRun, Command, DecideApproval, SignalRun, reply};
use tokio::time::Instant;

/// Serves `SignalRun`.
pub(super) async fn signal(
    context: &Context,
    request: v1::SignalRunRequest,
    deadline: Instant,
) -> Result<v1::SignalRunResponse, Refusal> {
    let body = SignalRun {
        run_id: request::run_id(request.run_id)?,
        signal_type: request::name(SignalType::new(request.r#type))?,
        payload: request::json(&request.payload, "payload", "{}")?,
        scope: request::optional(request.scope, ScopePathText::new)?,
        signal_id: request::optional(request.signal_id, SignalId::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        namespace: request::namespace(&request.namespace)?,
        body,
    };
    let reply::SignalAccepted { is_repeated } = context.gateway.submit(command, deadline).await?;
    Ok(v1::SignalRunResponse {
        existing: is_repeated,
    })
}

/// Serves `DecideApproval`.
pub(super) async fn decide_approval(
    context: &Context,
    request: v1::DecideApprovalRequest,
    deadline: Instant,
) -> Result<v1::DecideApprovalResponse, Refusal> {
    let body = DecideApproval {
        run_id: request::run_id(request.run_id)?,
        step: request::optional(request.step, StepName::new)?,
        scope: request::optional(request.scope, ScopePathText::new)?,
        visit: request.visit,
        is_approved: request.approved,
        comment: request::optional(request.comment, Comment::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        namespace: request::namespace(&request.namespace)?,
        body,
    };
    let reply: reply::ApprovalDecided = context.gateway.submit(command, deadline).await?;
    Ok(v1::DecideApprovalResponse {
        step: reply.step.to_string(),
        visit: reply.visit,
        outcome: reply.outcome.map(|outcome| outcome.to_string()),
    })
}

/// Serves `CancelRun`.
pub(super) async fn cancel(
    context: &Context,
    request: v1::CancelRunRequest,
    deadline: Instant,
) -> Result<v1::CancelRunResponse, Refusal> {
    let body = CancelRun {
        run_id: request::run_id(request.run_id)?,
        reason: Some(request.reason).filter(|reason| !reason.is_empty()),
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        namespace: request::namespace(&request.namespace)?,
        body,
    };
    context.gateway.submit(command, deadline).await?;
    Ok(v1::CancelRunResponse {})
}
