//! Passing a poll on to the leader: polls live in the leader's memory, so any node may be asked but
//! only the leader can answer.

use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::{AWAIT_BYTES_MAX, LEADER_CONNECT_DEADLINE};
use flotilla_api::v1;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use v1::worker_service_client::WorkerServiceClient;

/// The metadata of a call that another node has passed on. It is not passed on again: nodes that
/// disagree on who leads would send it to each other for ever.
const FORWARDED: &str = "flo-forwarded";

/// Whether another node has passed the call on.
pub(super) fn is_forwarded(metadata: &MetadataMap) -> bool {
    metadata.contains_key(FORWARDED)
}

/// Channels to the nodes that led, by client address. Few: one for each member.
#[derive(Default)]
pub(super) struct Leaders {
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl Leaders {
    /// Asks the leader for tasks.
    pub(super) async fn await_tasks(
        &self,
        context: &Context,
        asked: v1::AwaitRequest,
        deadline: Instant,
    ) -> Result<v1::AwaitResponse, Status> {
        let leadership = context.gateway.replica().leadership();
        let leader = leadership.borrow().leader.clone();
        let leader = leader.filter(|leader| leader.node_id != context.node);
        let leader = leader.ok_or_else(|| Status::from(Refusal::not_leader()))?;
        let channel = self.channel(context, &leader.client_address)?;
        let mut request = tonic::Request::new(asked);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        let mark = MetadataValue::from_static("1");
        request.metadata_mut().insert(FORWARDED, mark);
        let mut leader =
            WorkerServiceClient::new(channel).max_decoding_message_size(AWAIT_BYTES_MAX);
        let answered = leader.r#await(request).await;
        answered.map(tonic::Response::into_inner).map_err(told_on)
    }

    fn channel(&self, context: &Context, address: &str) -> Result<Channel, Status> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| Status::from(Refusal::not_leader()))?;
        let endpoint = endpoint
            .connect_timeout(LEADER_CONNECT_DEADLINE)
            .tcp_nodelay(true);
        let channel = context.sockets.channel(&endpoint);
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}

/// The leader's refusal as it is; where only the way to the leader failed, one of this node's.
fn told_on(status: Status) -> Status {
    match status.source() {
        None => status,
        Some(_) => {
            let message = "expected the leader to answer, but the way to it failed";
            Refusal::unavailable(message).into()
        }
    }
}
