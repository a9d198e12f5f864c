//! Passing a poll on to the leader: polls live in the leader's memory, so any node may be asked but
//! only the leader can answer.

use crate::context::Context;
use crate::errors::Refusal;
use flotilla_api::v1;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use v1::worker_service_client::WorkerServiceClient;

/// Longer than this a node takes to connect to another one only when that one is gone.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

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
        let channel = self.channel(&leader.client_address)?;
        let mut request = tonic::Request::new(asked);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        WorkerServiceClient::new(channel)
            .r#await(request)
            .await
            .map(tonic::Response::into_inner)
    }

    fn channel(&self, address: &str) -> Result<Channel, Status> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| Status::from(Refusal::not_leader()))?;
        let channel = endpoint
            .connect_timeout(CONNECT_DEADLINE)
            .tcp_nodelay(true)
            .connect_lazy();
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}
