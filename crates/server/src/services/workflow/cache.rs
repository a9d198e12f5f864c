//! Drops the cached results of plans (W37).

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{EventName, WorkflowName};
use flotilla_engine::{Command, InvalidateCache, RequestId, reply};
use tokio::time::Instant;

/// Serves `InvalidateCache`.
pub(super) async fn invalidate(
    context: &CallContext,
    request: v1::InvalidateCacheRequest,
    deadline: Instant,
) -> Result<v1::InvalidateCacheResponse, Refusal> {
    let event = request::name("event", EventName::new(request.event))?;
    let workflow = request::optional("workflow", request.workflow, WorkflowName::new)?;
    let namespace = request::namespace(&request.namespace)?;
    let mut request_id = request::request_id(&request.request_id)?;
    let mut after = None;
    let mut plan_count = 0;
    loop {
        let command = Command {
            request_id: Some(request_id),
            scope: namespace.clone(),
            body: InvalidateCache {
                event: event.clone(),
                workflow: workflow.clone(),
                after,
            },
        };
        let reply: reply::CacheInvalidated = context.gateway.submit(command, deadline).await?;
        plan_count += u64::from(reply.plan_count);
        if reply.next.is_none() {
            return Ok(v1::InvalidateCacheResponse { plan_count });
        }
        after = reply.next;
        // Each batch has its own request id, and the same one if the caller retries the whole call.
        request_id = RequestId(request_id.0.wrapping_add(1));
    }
}
