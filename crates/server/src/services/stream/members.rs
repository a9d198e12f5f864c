//! Consumers join and leave a group (A31).

use super::groups::new_group;
use super::name;
use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ConsumerName, Namespace, StreamName, WorkerId};
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, JoinGroup, LeaveGroup, Rejection, reply, view};
use tokio::time::Instant;

/// Serves `JoinGroup`.
pub(super) async fn join(
    context: &CallContext,
    request: v1::JoinGroupRequest,
    deadline: Instant,
) -> Result<v1::JoinGroupResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let group = name::group(request.stream, request.group)?;
    require_stream(context, &namespace, &group.stream, deadline).await?;
    let worker = match request.worker_id.as_str() {
        "" => WorkerId::new(request.consumer.as_str()).ok(),
        worker => Some(request::name("worker_id", WorkerId::new(worker))?),
    };
    let body = JoinGroup {
        group: group.clone(),
        consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
        incarnation: request.incarnation,
        worker,
        create: request.create.as_ref().map(new_group).transpose()?,
        is_renewal: request.renewal,
    };
    // The incarnation makes a retry safe.
    let command = Command::new(namespace.clone(), body);
    let reply::GroupJoined { ack_timeout_ms } = gateway.submit(command, deadline).await?;
    let look_up = |reader: &dyn Reader| view::group(reader, &namespace, &group);
    let found = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let found = found.ok_or_else(|| Rejection::GroupNotFound(group.clone()))?;
    Ok(v1::JoinGroupResponse {
        mode: convert::group::mode(found.record.settings.mode()).into(),
        ack_timeout_ms,
    })
}

/// Refuses a missing stream without a log entry: workers that wait for it retry often.
async fn require_stream(
    context: &CallContext,
    namespace: &Namespace,
    stream: &StreamName,
    deadline: Instant,
) -> Result<(), Refusal> {
    for freshness in [Freshness::Stale, Freshness::Linearizable] {
        let look_up = |reader: &dyn Reader| view::stream(reader, namespace, stream);
        let gateway = context.gateway.of(namespace);
        let found = gateway.read(freshness, deadline, look_up).await?;
        if found.is_some() {
            return Ok(());
        }
    }
    Err(Rejection::StreamNotFound(stream.clone()).into())
}

/// Serves `LeaveGroup`.
pub(super) async fn leave(
    context: &CallContext,
    request: v1::LeaveGroupRequest,
    deadline: Instant,
) -> Result<v1::LeaveGroupResponse, Refusal> {
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: LeaveGroup {
            group: name::group(request.stream, request.group)?,
            consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
            incarnation: request.incarnation,
        },
    };
    let reply::Deleted { is_found } = context.gateway.submit(command, deadline).await?;
    Ok(v1::LeaveGroupResponse { left: is_found })
}
