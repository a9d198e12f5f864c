//! The outcome of an accepted task (W38), by RPC and over HTTP.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::{ClusterScope, Command, ReportTask, TaskReport, TaskToken, reply};
use tokio::time::Instant;

/// Serves `ReportTask`.
pub(crate) async fn report(
    context: &CallContext,
    request: v1::ReportTaskRequest,
    deadline: Instant,
) -> Result<v1::ReportTaskResponse, Refusal> {
    let token: TaskToken =
        request
            .task_token
            .parse()
            .map_err(|error: flotilla_engine::TokenInvalid| {
                Refusal::invalid("task_token", error.to_string())
            })?;
    let gateway = context.gateway.of_task(&token);
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        // The token names the task in any namespace.
        scope: ClusterScope,
        body: ReportTask {
            token,
            report: TaskReport {
                outcome: request::outcome(request.outcome)?,
                output: request::json(&request.output, "output", "null")?,
                not_before: request::not_before(&gateway, request.delay_ms, request.not_before_ms)?,
                state_patch: request::state_patch(&request.state_patch)?,
                usage: request::usage(&request.usage)?,
            },
        },
    };
    let reply::Done {} = gateway.submit(command, deadline).await?;
    Ok(v1::ReportTaskResponse {})
}
