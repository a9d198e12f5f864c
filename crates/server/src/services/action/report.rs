//! The outcome of an accepted task (W38), by RPC and over HTTP.

use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, OutcomeName};
use flotilla_engine::{Command, ReportTask, TaskToken, reply};
use tokio::time::Instant;

/// The outcome of a report that gives none.
const OUTCOME_DEFAULT: &str = "success";

/// Serves `ReportTask`.
pub(crate) async fn report(
    context: &Context,
    request: v1::ReportTaskRequest,
    deadline: Instant,
) -> Result<v1::ReportTaskResponse, Refusal> {
    let outcome = if request.outcome.is_empty() {
        OUTCOME_DEFAULT.to_owned()
    } else {
        request.outcome
    };
    let token: TaskToken =
        request
            .task_token
            .parse()
            .map_err(|error: flotilla_engine::TokenInvalid| {
                Refusal::invalid("task_token", error.to_string())
            })?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        // The token names the task in any namespace.
        namespace: Namespace::default_namespace(),
        body: ReportTask {
            token,
            outcome: request::name(OutcomeName::new(outcome))?,
            output: request::json(&request.output, "output", "null")?,
        },
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::ReportTaskResponse {})
}
