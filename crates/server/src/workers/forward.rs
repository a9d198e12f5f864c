//! Forwards a poll to the leader: polls are in the leader's memory, so any node accepts them, but
//! only the leader can serve them.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::limits::AWAIT_BYTES_MAX;
use crate::members::ForwardedActor;
use crate::request;
use flotilla_api::v1;
use std::error::Error;
use tokio::time::Instant;
use tonic::Status;

/// Asks the leader of the namespace for tasks, on behalf of the caller.
pub(super) async fn await_tasks(
    context: &CallContext,
    request: v1::AwaitRequest,
    deadline: Instant,
) -> Result<v1::AwaitResponse, Status> {
    let namespace = request::namespace(&request.namespace)?;
    let replica = context.gateway.of(&namespace).replica();
    let leader = replica.leadership().borrow().leader.clone();
    let leader = leader.filter(|leader| leader.node_id != context.node);
    let leader = leader.ok_or_else(Refusal::not_leader)?;
    let actor = ForwardedActor(context.gateway.actor().clone());
    let workers = context.leaders.worker_service((replica, &leader), actor);
    let workers = workers.map_err(|_| Refusal::not_leader())?;
    let mut request = tonic::Request::new(request);
    request.set_timeout(deadline.saturating_duration_since(Instant::now()));
    let response = workers
        .max_decoding_message_size(AWAIT_BYTES_MAX)
        .r#await(request)
        .await;
    response
        .map(tonic::Response::into_inner)
        .map_err(relay_status)
}

/// The leader's refusal unchanged. If the connection to the leader failed, or another node answers at its address, one of this
/// node's: such statuses have no details.
fn relay_status(status: Status) -> Status {
    if status.source().is_none() && !status.details().is_empty() {
        return status;
    }
    let message = "expected the leader to respond, but the connection to it failed, or it took no call from this node";
    Refusal::unavailable(message).into()
}
