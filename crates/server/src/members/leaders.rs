//! Calls of the leader's worker service, at its peer port.

use super::ForwardedActor;
use crate::limits::{LEADER_CONNECT_DEADLINE, LEADER_KEEPALIVE};
use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use flotilla_engine::{Actor, NodeId};
use flotilla_replica::{
    HostCallSender, HostServicesHandle, Leader, MemberSecretInterceptor, Replica, Sockets,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::body::Body;
use tonic::codegen::http::{Request as HttpRequest, Response};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

/// The worker service of a leader, on behalf of one actor.
pub(crate) type LeaderWorkerService =
    WorkerServiceClient<InterceptedService<Connection, MemberCall>>;

/// A connection to the services of a member, local or remote.
type Connection = BoxCloneSyncService<HttpRequest<Body>, Response<Body>, Status>;

/// The address of the leader is not a valid address. Members check addresses when they join, so this is a bug.
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected the address of the leader as HOST:PORT, but it is {0:?}")]
pub(crate) struct InvalidAddress(String);

/// Calls the leader, which may be this node.
pub(crate) struct LeaderClients {
    node: NodeId,
    own_services: HostServicesHandle,
    sockets: Arc<dyn Sockets>,
    secret: MemberSecretInterceptor,
    /// To former and current leaders, by their addresses for members: at most two per member. Polls of clients, which may be
    /// many, have another channel than the streams of embedded workers.
    channels: Mutex<BTreeMap<(String, ChannelUse), Channel>>,
}

/// What a channel is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChannelUse {
    /// The streams of embedded workers.
    EmbeddedWorkers,
    /// Polls that clients have sent to this node.
    ForwardedPolls,
}

/// States the sender and the actor of each call, and adds the secret of the members.
#[derive(Clone)]
pub(crate) struct MemberCall {
    sender: HostCallSender,
    actor: ForwardedActor,
    secret: MemberSecretInterceptor,
}

impl Interceptor for MemberCall {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        self.sender.state(metadata);
        self.actor.clone().state(metadata);
        self.secret.call(request)
    }
}

impl LeaderClients {
    /// Calls over the sockets between members, from this node, which has these services itself.
    pub(crate) fn new(
        node: NodeId,
        own_services: HostServicesHandle,
        sockets: Arc<dyn Sockets>,
        secret: MemberSecretInterceptor,
    ) -> Self {
        Self {
            node,
            own_services,
            sockets,
            secret,
            channels: Mutex::default(),
        }
    }

    /// The worker service of the leader of this replica, on behalf of the actor.
    pub(crate) fn worker_service(
        &self,
        (replica, leader): (&Replica, &Leader),
        actor: ForwardedActor,
    ) -> Result<LeaderWorkerService, InvalidAddress> {
        // A single node may listen at another address than the one in the membership, so it calls itself directly.
        let connection = if leader.node_id == self.node {
            let services = self.own_services.clone();
            let infallible =
                ServiceExt::<HttpRequest<Body>>::map_err(services, |never| match never {});
            BoxCloneSyncService::new(infallible)
        } else {
            let channel_use = match actor.0 {
                Actor::System => ChannelUse::EmbeddedWorkers,
                Actor::Anonymous | Actor::Token(_) | Actor::Bound(_) => ChannelUse::ForwardedPolls,
            };
            let channel = self.channel(&leader.peer_address, channel_use)?;
            BoxCloneSyncService::new(channel.map_err(|error| Status::from_error(error.into())))
        };
        Ok(WorkerServiceClient::with_interceptor(
            connection,
            MemberCall {
                sender: replica.host_call_sender(leader.node_id),
                actor,
                secret: self.secret.clone(),
            },
        ))
    }

    fn channel(&self, address: &str, channel_use: ChannelUse) -> Result<Channel, InvalidAddress> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (address.to_owned(), channel_use);
        if let Some(channel) = channels.get(&key) {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| InvalidAddress(address.to_owned()))?
            .connect_timeout(LEADER_CONNECT_DEADLINE)
            .tcp_nodelay(true)
            // The leader's machine may be gone, and its streams and polls last for minutes.
            .http2_keep_alive_interval(LEADER_KEEPALIVE)
            .keep_alive_timeout(LEADER_KEEPALIVE);
        let channel = self.sockets.channel(&endpoint);
        channels.insert(key, channel.clone());
        Ok(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_api::v1::AwaitRequest;
    use flotilla_replica::{Arrivals, HostServices};
    use hyper_util::rt::TokioIo;
    use std::io;
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::net::TcpListener;
    use tokio::time::timeout;
    use tower::service_fn;

    /// Connects to a machine that answers nothing after the connection is open, and does not close it.
    struct Vanished;

    impl Sockets for Vanished {
        fn channel(&self, endpoint: &Endpoint) -> Channel {
            endpoint.connect_with_connector_lazy(service_fn(async |_| {
                let (near, mut far) = duplex(1 << 16);
                tokio::spawn(
                    async move { while matches!(far.read(&mut [0; 64]).await, Ok(1..)) {} },
                );
                Ok::<_, io::Error>(TokioIo::new(near))
            }))
        }

        fn accept(&self, _: TcpListener) -> Arrivals {
            unreachable!("nothing connects to it")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_forwarded_poll_ends_soon_after_the_machine_of_the_leader_has_vanished() {
        let services = HostServices::default();
        let clients = LeaderClients::new(
            NodeId(1),
            services.handle(),
            Arc::new(Vanished),
            MemberSecretInterceptor::default(),
        );
        for channel_use in [ChannelUse::EmbeddedWorkers, ChannelUse::ForwardedPolls] {
            let channel = clients
                .channel("leader:1", channel_use)
                .expect("an address");
            let mut workers = WorkerServiceClient::new(channel);
            let poll = workers.r#await(AwaitRequest::default());
            let ended = timeout(3 * LEADER_KEEPALIVE, poll).await;
            let answer = ended.expect("it does not wait for its deadline");
            assert!(answer.is_err(), "{answer:?}");
        }
    }
}
