//! Forwards a poll to the leader: polls are in the leader's memory, so any node accepts them, but
//! only the leader can serve them.

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::limits::{AWAIT_BYTES_MAX, LEADER_CONNECT_DEADLINE, LEADER_KEEPALIVE};
use crate::request;
use flotilla_api::v1;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use v1::worker_service_client::WorkerServiceClient;

/// The metadata of a call that another node has forwarded. It is not forwarded again: nodes that
/// disagree on the leader would otherwise forward it forever.
const FORWARDED: &str = "flo-forwarded";

/// Whether another node has forwarded the call.
pub(super) fn is_forwarded(metadata: &MetadataMap) -> bool {
    metadata.contains_key(FORWARDED)
}

/// Channels to former and current leaders, by client address: at most one per member.
#[derive(Default)]
pub(super) struct Leaders {
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl Leaders {
    /// Asks the leader of the namespace for tasks.
    pub(super) async fn await_tasks(
        &self,
        context: &CallContext,
        request: v1::AwaitRequest,
        deadline: Instant,
    ) -> Result<v1::AwaitResponse, Status> {
        let namespace = request::namespace(&request.namespace)?;
        let leadership = context.gateway.of(&namespace).replica().leadership();
        let leader = leadership.borrow().leader.clone();
        let leader = leader.filter(|leader| leader.node_id != context.node);
        let leader = leader.ok_or_else(|| Status::from(Refusal::not_leader()))?;
        let channel = self.channel(context, &leader.client_address)?;
        let mut request = tonic::Request::new(request);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        let mark = MetadataValue::from_static("1");
        request.metadata_mut().insert(FORWARDED, mark);
        context.show_credential(request.metadata_mut());
        let mut leader =
            WorkerServiceClient::new(channel).max_decoding_message_size(AWAIT_BYTES_MAX);
        let response = leader.r#await(request).await;
        response
            .map(tonic::Response::into_inner)
            .map_err(relay_status)
    }

    fn channel(&self, context: &CallContext, address: &str) -> Result<Channel, Status> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| Status::from(Refusal::not_leader()))?;
        let endpoint = endpoint
            .connect_timeout(LEADER_CONNECT_DEADLINE)
            .tcp_nodelay(true)
            // The leader's machine may be gone, and a poll lasts for minutes.
            .http2_keep_alive_interval(LEADER_KEEPALIVE)
            .keep_alive_timeout(LEADER_KEEPALIVE);
        let channel = context.sockets.channel(&endpoint);
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}

/// The leader's refusal unchanged; if only the connection to the leader failed, one of this node's.
fn relay_status(status: Status) -> Status {
    match status.source() {
        None => status,
        Some(_) => {
            let message = "expected the leader to respond, but the connection to it failed";
            Refusal::unavailable(message).into()
        }
    }
}
