//! Reading, deleting, enabling and disabling actions (A1).

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, DeleteAction, Rejection, SetActionEnabled, view};
use tokio::time::Instant;

/// Serves `GetAction`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetActionRequest,
    deadline: Instant,
) -> Result<v1::Action, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let name = request::name("name", ActionName::new(request.name))?;
    find(context, &namespace, name, deadline).await
}

/// The action as the cluster knows it now.
pub(super) async fn find(
    context: &CallContext,
    namespace: &Namespace,
    name: ActionName,
    deadline: Instant,
) -> Result<v1::Action, Refusal> {
    let missing = Rejection::ActionNotFound(name.clone());
    let gateway = context.gateway.of(namespace);
    let namespace = namespace.clone();
    let look_up = move |reader: &dyn Reader| view::action(reader, &namespace, &name);
    let found = gateway
        .scan(Freshness::Linearizable, deadline, look_up)
        .await?;
    Ok(convert::action::message(found.ok_or(missing)?))
}

/// Serves `ListActions`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListActionsRequest,
    deadline: Instant,
) -> Result<v1::ListActionsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| view::actions(reader, &namespace, page.range());
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListActionsResponse {
        items: found
            .items
            .into_iter()
            .map(convert::action::message)
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `DeleteAction`.
pub(super) async fn delete(
    context: &CallContext,
    request: v1::DeleteActionRequest,
    deadline: Instant,
) -> Result<v1::DeleteActionResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = request::name("name", ActionName::new(request.name))?;
    let request_id = Some(request::request_id(&request.request_id)?);
    // The engine's reply to a repeated delete does not say whether the action existed.
    let look_up = |reader: &dyn Reader| view::action_record(reader, &namespace, &name);
    let found = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let body = DeleteAction { name };
    gateway
        .submit(
            Command {
                request_id,
                scope: namespace,
                body,
            },
            deadline,
        )
        .await?;
    Ok(v1::DeleteActionResponse {
        deleted: found.is_some(),
    })
}

/// Serves `EnableAction`.
pub(super) async fn enable(
    context: &CallContext,
    request: v1::EnableActionRequest,
    deadline: Instant,
) -> Result<v1::EnableActionResponse, Refusal> {
    let command = switch(&request.namespace, request.name, true, &request.request_id)?;
    context.gateway.submit(command, deadline).await?;
    Ok(v1::EnableActionResponse {})
}

/// Serves `DisableAction`.
pub(super) async fn disable(
    context: &CallContext,
    request: v1::DisableActionRequest,
    deadline: Instant,
) -> Result<v1::DisableActionResponse, Refusal> {
    let command = switch(&request.namespace, request.name, false, &request.request_id)?;
    context.gateway.submit(command, deadline).await?;
    Ok(v1::DisableActionResponse {})
}

fn switch(
    namespace: &str,
    name: String,
    is_enabled: bool,
    request_id: &[u8],
) -> Result<Command<SetActionEnabled>, Refusal> {
    let name = request::name("name", ActionName::new(name))?;
    Ok(Command {
        request_id: Some(request::request_id(request_id)?),
        scope: request::namespace(namespace)?,
        body: SetActionEnabled { name, is_enabled },
    })
}
