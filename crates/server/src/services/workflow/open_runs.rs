//! Acting on open runs: signals (W19) and cancels (W18).

use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{SignalId, SignalType};
use flotilla_engine::{CancelRun, Command, SignalRun, reply};
use tokio::time::Instant;

/// Serves `SignalRun`.
pub(super) async fn signal(
    context: &Context,
    asked: v1::SignalRunRequest,
    deadline: Instant,
) -> Result<v1::SignalRunResponse, Refusal> {
    let body = SignalRun {
        run_id: request::run_id(asked.run_id)?,
        signal_type: request::name(SignalType::new(asked.r#type))?,
        payload: request::json(&asked.payload, "payload", "{}")?,
        signal_id: request::optional(asked.signal_id, SignalId::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        namespace: request::namespace(&asked.namespace)?,
        body,
    };
    let reply::SignalAccepted { is_repeated } = context.gateway.submit(command, deadline).await?;
    Ok(v1::SignalRunResponse {
        existing: is_repeated,
    })
}

/// Serves `CancelRun`.
pub(super) async fn cancel(
    context: &Context,
    asked: v1::CancelRunRequest,
    deadline: Instant,
) -> Result<v1::CancelRunResponse, Refusal> {
    let body = CancelRun {
        run_id: request::run_id(asked.run_id)?,
        reason: Some(asked.reason).filter(|reason| !reason.is_empty()),
    };
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        namespace: request::namespace(&asked.namespace)?,
        body,
    };
    context.gateway.submit(command, deadline).await?;
    Ok(v1::CancelRunResponse {})
}
