//! Reading action runs (A2).

use super::wait;
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::WAIT_MS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, ActionRunNumber};
use flotilla_engine::store::Reader;
use flotilla_engine::{RejectionCode, view};
use std::time::Duration;
use tokio::time::Instant;

/// How long a caller waits.
pub(super) struct Patience {
    /// For the answer as such.
    pub(super) deadline: Instant,
    /// In all, when the caller said so.
    pub(super) given: Option<Instant>,
}

/// Serves `GetActionRun`.
pub(super) async fn get(
    context: &Context,
    asked: v1::GetActionRunRequest,
    patience: Patience,
) -> Result<v1::ActionRun, Refusal> {
    let namespace = request::namespace(&asked.namespace)?;
    let number = number(&asked.action_run_id)?;
    if asked.wait_ms > WAIT_MS_MAX {
        let message = format!(
            "expected a wait of at most {WAIT_MS_MAX} ms, but it is {} ms",
            asked.wait_ms
        );
        return Err(Refusal::invalid("wait_ms", message));
    }
    let wait_end = Instant::now() + Duration::from_millis(asked.wait_ms);
    let until = patience.given.map_or(wait_end, |given| given.min(wait_end));
    context.gateway.catch_up(patience.deadline).await?;
    let found = wait::until_ended(context, (&namespace, number), until).await?;
    Ok(convert::action_run::message(found))
}

/// Serves `ListActionRuns`.
pub(super) async fn list(
    context: &Context,
    asked: v1::ListActionRunsRequest,
    deadline: Instant,
) -> Result<v1::ListActionRunsResponse, Refusal> {
    let namespace = request::namespace(&asked.namespace)?;
    let name = request::name(ActionName::new(asked.name))?;
    let page = request::page(asked.limit, &asked.page_token)?;
    let list =
        move |reader: &dyn Reader| view::action_runs(reader, &namespace, &name, page.scope());
    let found = context
        .gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListActionRunsResponse {
        items: found
            .items
            .into_iter()
            .map(convert::action_run::row)
            .collect(),
        next_page: request::page_token(found.next),
    })
}

fn number(id: &str) -> Result<ActionRunNumber, Refusal> {
    ActionRunNumber::from_id(id).ok_or_else(|| {
        let message = format!("expected an action run, but there is none with the id {id:?}");
        Refusal::new(RejectionCode::ActionRunNotFound, message)
            .with_hint("`flo action runs NAME` lists them")
    })
}
