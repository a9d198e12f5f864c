//! The outcome of an accepted task (W38), by RPC and over HTTP.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::keyring::ShownTaskToken;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::{ClusterScope, Command, ReportTask, TaskReport, reply};
use tokio::time::Instant;

/// Serves `ReportTask`: what `request` reports, whose token is checked.
pub(crate) async fn report(
    context: &CallContext,
    shown: ShownTaskToken,
    request: v1::ReportTaskRequest,
    deadline: Instant,
) -> Result<v1::ReportTaskResponse, Refusal> {
    let ShownTaskToken {
        token,
        is_authentic,
    } = shown;
    let gateway = context.gateway.of_task(&token);
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        // The token names the task in any namespace.
        scope: ClusterScope,
        body: ReportTask {
            token,
            is_authentic,
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
