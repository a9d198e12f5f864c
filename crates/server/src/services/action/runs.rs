//! Reading and cancelling action runs (A2).

use super::wait;
use crate::access::CallContext;
use crate::convert;
use crate::deadline::WaitBounds;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, ActionRunNumber};
use flotilla_engine::store::Reader;
use flotilla_engine::{CancelActionRun, Command, RejectionCode, reply, view};
use tokio::time::Instant;

/// Serves `GetActionRun`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetActionRunRequest,
    bounds: WaitBounds,
) -> Result<v1::ActionRun, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let number = number(&request.action_run_id)?;
    let length = request::wait(request.wait_ms)?;
    let wait = bounds.wait(length.unwrap_or_default());
    gateway.catch_up(bounds.deadline).await?;
    let found = wait::until_ended(context, &namespace, number, wait).await?;
    Ok(convert::action_run::message(found))
}

/// Serves `CancelActionRun`.
pub(super) async fn cancel(
    context: &CallContext,
    request: v1::CancelActionRunRequest,
    deadline: Instant,
) -> Result<v1::CancelActionRunResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: CancelActionRun {
            action_run: number(&request.action_run_id)?,
            reason: Some(request.reason).filter(|reason| !reason.is_empty()),
        },
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::CancelActionRunResponse {})
}

/// Serves `ListActionRuns`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListActionRunsRequest,
    deadline: Instant,
) -> Result<v1::ListActionRunsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = request::name("name", ActionName::new(request.name))?;
    let page = request::page(request.limit, &request.page_token)?;
    let list =
        move |reader: &dyn Reader| view::action_runs(reader, &namespace, &name, page.range());
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListActionRunsResponse {
        items: found
            .items
            .into_iter()
            .map(convert::action_run::row)
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

fn number(id: &str) -> Result<ActionRunNumber, Refusal> {
    ActionRunNumber::from_id(id).ok_or_else(|| {
        let message = format!("expected an action run, but none has the id {id:?}");
        Refusal::new(RejectionCode::ActionRunNotFound, message)
            .with_hint("`flo action runs NAME` lists the action runs")
    })
}
