//! Adds and lists info entries of runs (W92).

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, InfoRange, InfoTaskView, InfoView};
use flotilla_engine::{AddInfo, Command, Rejection, reply};
use tokio::time::Instant;

/// Serves `AddInfo`.
pub(super) async fn add(
    context: &CallContext,
    request: v1::AddInfoRequest,
    deadline: Instant,
) -> Result<v1::AddInfoResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: AddInfo {
            run_id: request::run_id(request.run_id)?,
            content: request::info(&request.content)?,
        },
    };
    let reply::InfoAdded { number } = context.gateway.submit(command, deadline).await?;
    Ok(v1::AddInfoResponse { number })
}

/// Serves `ListInfo`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListInfoRequest,
    deadline: Instant,
) -> Result<v1::ListInfoResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    let range = InfoRange {
        after: request.after,
        limit: request::rows_max(request.limit)?,
    };
    let missing = Rejection::RunNotFound(run_id.clone());
    let list = move |reader: &dyn Reader| view::infos(reader, &namespace, &run_id, range);
    let found = gateway
        .scan(Freshness::of(request.stale), deadline, list)
        .await?;
    let page = found.ok_or(missing)?;
    Ok(v1::ListInfoResponse {
        entries: page.entries.into_iter().map(message).collect(),
        has_more: page.has_more,
    })
}

fn message(entry: InfoView) -> v1::Info {
    v1::Info {
        number: entry.number,
        at_ms: entry.at_ms,
        content: entry.content.as_str().to_owned().into(),
        task: entry.task.map(task),
        redacted: false,
    }
}

fn task(task: InfoTaskView) -> v1::InfoTask {
    v1::InfoTask {
        scope: task.scope,
        step: task.step,
        visit: task.visit,
        action_run_id: task.action_run.to_string(),
        attempt: task.attempt,
    }
}
