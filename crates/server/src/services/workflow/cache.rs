//! Dropping what plans have cached (W37).

use super::unexpected;
use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{EventName, WorkflowName};
use flotilla_engine::{Body, Command, InvalidateCache, Reply};
use tokio::time::Instant;

/// Serves `InvalidateCache`.
pub(super) async fn invalidate(
    context: &Context,
    asked: v1::InvalidateCacheRequest,
    deadline: Instant,
) -> Result<v1::InvalidateCacheResponse, Refusal> {
    let body = Body::InvalidateCache(InvalidateCache {
        event: request::name(EventName::new(asked.event))?,
        workflow: request::optional(asked.workflow, WorkflowName::new)?,
    });
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        namespace: request::namespace(&asked.namespace)?,
        body,
    };
    match context.gateway.submit(command, deadline).await? {
        Reply::CacheInvalidated { plans_count } => Ok(v1::InvalidateCacheResponse {
            plans_count: plans_count.into(),
        }),
        reply => Err(unexpected(&reply)),
    }
}
