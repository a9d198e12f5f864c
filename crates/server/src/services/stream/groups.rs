//! Creating, reading about and deleting consumer groups (A31).

use super::name::{self, position};
use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::{Namespace, StreamName};
use flotilla_engine::limits::{ACK_TIMEOUT_MS_DEFAULT, DELIVERIES_DEFAULT};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{
    Command, CreateGroup, DeleteGroup, GroupRef, GroupSettings, NewGroup, RecordId, Rejection,
    StreamPosition, reply, view,
};
use tokio::time::Instant;

/// Serves `CreateGroup`.
pub(super) async fn create(
    context: &CallContext,
    request: v1::CreateGroupRequest,
    deadline: Instant,
) -> Result<v1::CreateGroupResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: CreateGroup {
            group: name::group(request.stream, request.group)?,
            new: new_group(&request.settings.unwrap_or_default())?,
        },
    };
    let reply::GroupCreated { is_new } = context.gateway.submit(command, deadline).await?;
    Ok(v1::CreateGroupResponse { created: is_new })
}

/// The settings of a new group.
pub(super) fn new_group(request: &v1::GroupSettings) -> Result<NewGroup, Refusal> {
    let mode = match request.mode() {
        v1::GroupMode::Unspecified | v1::GroupMode::Shared => GroupMode::Shared,
        v1::GroupMode::Exclusive => GroupMode::Exclusive,
        v1::GroupMode::KeyShared => GroupMode::KeyShared,
    };
    let ack_timeout_ms = request.ack_timeout_ms.unwrap_or(ACK_TIMEOUT_MS_DEFAULT);
    let max_deliveries = request.max_deliveries.unwrap_or(DELIVERIES_DEFAULT);
    let settings = GroupSettings::new(mode, ack_timeout_ms, max_deliveries)
        .map_err(|error| Refusal::invalid("ack_timeout_ms", error.to_string()))?;
    Ok(NewGroup {
        settings,
        start: position(&request.start, "start", StreamPosition::Id(RecordId::START))?,
    })
}

/// Serves `GetGroup`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetGroupRequest,
    deadline: Instant,
) -> Result<v1::GroupInfo, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = name::group(request.stream, request.group)?;
    let scope = (namespace.clone(), name.clone());
    let look_up = move |reader: &dyn Reader| -> Result<_, StoreError> {
        let group = view::group(reader, &scope.0, &scope.1)?;
        let consumers = view::consumers(reader, &scope.0, &scope.1)?;
        Ok(group.map(|group| (group, consumers)))
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, look_up)
        .await?;
    let Some((group, consumers)) = found else {
        return Err(missing(context, &namespace, name));
    };
    Ok(v1::GroupInfo {
        consumers: consumers
            .into_iter()
            .map(convert::group::consumer)
            .collect(),
        ..convert::group::message(&name.stream, group)
    })
}

/// Which is missing: the stream, or only its group.
fn missing(context: &CallContext, namespace: &Namespace, name: GroupRef) -> Refusal {
    let look_up = |reader: &dyn Reader| view::stream(reader, namespace, &name.stream);
    match context.gateway.of(namespace).read_here(look_up) {
        Ok(Some(_)) => Rejection::GroupNotFound(name).into(),
        Ok(None) => Rejection::StreamNotFound(name.stream).into(),
        Err(refusal) => refusal,
    }
}

/// Serves `ListGroups`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListGroupsRequest,
    deadline: Instant,
) -> Result<v1::ListGroupsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let stream = request::name("stream", StreamName::new(request.stream))?;
    let page = request::page(request.limit, &request.page_token)?;
    let scope = stream.clone();
    let list = move |reader: &dyn Reader| -> Result<_, StoreError> {
        if view::stream(reader, &namespace, &scope)?.is_none() {
            return Ok(None);
        }
        view::groups(reader, &namespace, &scope, page.range()).map(Some)
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let found = found.ok_or_else(|| Rejection::StreamNotFound(stream.clone()))?;
    let items = found.items.into_iter();
    Ok(v1::ListGroupsResponse {
        items: items
            .map(|group| convert::group::message(&stream, group))
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `ListPending`.
pub(super) async fn pending(
    context: &CallContext,
    request: v1::ListPendingRequest,
    deadline: Instant,
) -> Result<v1::ListPendingResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = name::group(request.stream, request.group)?;
    let limit = request::rows_max(request.limit)?;
    let scope = (namespace.clone(), name.clone());
    let list = move |reader: &dyn Reader| -> Result<_, StoreError> {
        if view::group(reader, &scope.0, &scope.1)?.is_none() {
            return Ok(None);
        }
        view::pending(reader, &scope.0, &scope.1, limit).map(Some)
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let Some(found) = found else {
        return Err(missing(context, &namespace, name));
    };
    Ok(v1::ListPendingResponse {
        items: found.into_iter().map(convert::group::pending).collect(),
    })
}

/// Serves `DeleteGroup`.
pub(super) async fn delete(
    context: &CallContext,
    request: v1::DeleteGroupRequest,
    deadline: Instant,
) -> Result<v1::DeleteGroupResponse, Refusal> {
    let group = name::group(request.stream, request.group)?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: DeleteGroup { group },
    };
    let reply::Deleted { is_found } = context.gateway.submit(command, deadline).await?;
    Ok(v1::DeleteGroupResponse { deleted: is_found })
}
