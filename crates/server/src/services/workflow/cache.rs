//! Drops the cached results of plans (W37).

use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{EventName, WorkflowName};
use flotilla_engine::{Command, InvalidateCache, reply};
use tokio::time::Instant;

/// Serves `InvalidateCache`.
pub(super) async fn invalidate(
    context: &Context,
    request: v1::InvalidateCacheRequest,
    deadline: Instant,
) -> Result<v1::InvalidateCacheResponse, Refusal> {
    let body = InvalidateCache {
        event: request::name(EventName::new(request.event))?,
        workflow: request::optional(request.workflow, WorkflowName::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        namespace: request::namespace(&request.namespace)?,
        body,
    };
    let reply::CacheInvalidated { plan_count } = context.gateway.submit(command, deadline).await?;
    Ok(v1::InvalidateCacheResponse {
        plan_count: plan_count.into(),
    })
}
