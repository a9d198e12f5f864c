//! Reading runs and their histories (W21–W23).

use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::Rejection;
use flotilla_engine::ids::{RunId, WorkflowName};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, RunFilter};
use tokio::time::Instant;
use tonic::Code;

/// Serves `GetRun`.
pub(super) async fn get(
    context: &Context,
    asked: v1::GetRunRequest,
    deadline: Instant,
) -> Result<v1::Run, Refusal> {
    let namespace = request::namespace(&asked.namespace)?;
    let run_id = request::name(RunId::new(asked.run_id))?;
    let look_up = |reader: &dyn Reader| view::run(reader, &namespace, &run_id);
    let freshness = Freshness::of(asked.stale);
    let found = context.gateway.read(freshness, deadline, look_up).await?;
    Ok(convert::run::message(
        found.ok_or(Rejection::RunNotFound(run_id))?,
    ))
}

/// Serves `ListRuns`.
pub(super) async fn list(
    context: &Context,
    asked: v1::ListRunsRequest,
    deadline: Instant,
) -> Result<v1::ListRunsResponse, Refusal> {
    if !asked.r#where.is_empty() {
        let message =
            "expected no condition, but `where` is given and conditions are not served yet";
        return Err(
            Refusal::new(Code::Unimplemented, "where_unsupported", message)
                .with_hint("list by workflow and status, and filter the rows"),
        );
    }
    let namespace = request::namespace(&asked.namespace)?;
    let page = request::page(asked.limit, &asked.page_token)?;
    let filter = RunFilter {
        status: convert::run::wanted_status(asked.status()),
        workflow: request::optional(asked.workflow, WorkflowName::new)?,
    };
    let list = move |reader: &dyn Reader| view::runs(reader, &namespace, &filter, page.scope());
    let found = context
        .gateway
        .scan(Freshness::of(asked.stale), deadline, list)
        .await?;
    Ok(v1::ListRunsResponse {
        items: found.items.into_iter().map(convert::run::row).collect(),
        next_page: request::page_token(found.next),
    })
}

/// Serves `GetHistory`.
pub(super) async fn history(
    context: &Context,
    asked: v1::GetHistoryRequest,
    deadline: Instant,
) -> Result<v1::GetHistoryResponse, Refusal> {
    let namespace = request::namespace(&asked.namespace)?;
    let run_id = request::name(RunId::new(asked.run_id))?;
    let part = (asked.after_seq, request::rows_max(asked.limit)?);
    let missing = Rejection::RunNotFound(run_id.clone());
    let list = move |reader: &dyn Reader| view::history(reader, &namespace, &run_id, part);
    let found = context
        .gateway
        .scan(Freshness::of(asked.stale), deadline, list)
        .await?;
    let page = found.ok_or(missing)?;
    Ok(v1::GetHistoryResponse {
        events: page
            .events
            .into_iter()
            .map(convert::event::message)
            .collect(),
        has_more: page.has_more,
    })
}
