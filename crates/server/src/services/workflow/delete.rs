//! Deletes a workflow (W5).

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::{Command, DeleteWorkflow, RequestId, reply};
use tokio::time::Instant;

/// Serves `DeleteWorkflow`.
pub(super) async fn delete(
    context: &CallContext,
    request: v1::DeleteWorkflowRequest,
    deadline: Instant,
) -> Result<v1::DeleteWorkflowResponse, Refusal> {
    let workflow = request::name("name", WorkflowName::new(request.name))?;
    let namespace = request::namespace(&request.namespace)?;
    let mut request_id = request::request_id(&request.request_id)?;
    let mut deleted = false;
    loop {
        let command = Command {
            request_id: Some(request_id),
            scope: namespace.clone(),
            body: DeleteWorkflow {
                workflow: workflow.clone(),
            },
        };
        let reply: reply::WorkflowDeleted = context.gateway.submit(command, deadline).await?;
        deleted |= reply.is_found;
        if !reply.has_more {
            return Ok(v1::DeleteWorkflowResponse { deleted });
        }
        // Each batch has its own request id, and the same one if the caller retries the whole call:
        // so a retry deletes only what existed the first time.
        request_id = RequestId(request_id.0.wrapping_add(1));
    }
}
