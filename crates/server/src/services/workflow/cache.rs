//! Dropping what plans have cached (W37).

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
    asked: v1::InvalidateCacheRequest,
    deadline: Instant,
) -> Result<v1::InvalidateCacheResponse, Refusal> {
    let body = InvalidateCache {
        event: request::name(EventName::new(asked.event))?,
        workflow: request::optional(asked.workflow, WorkflowName::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        namespace: request::namespace(&asked.namespace)?,
        body,
    };
    let reply::CacheInvalidated { plans_count } = context.gateway.submit(command, deadline).await?;
    Ok(v1::InvalidateCacheResponse {
        plans_count: plans_count.into(),
    })
}
