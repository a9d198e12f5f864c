//! Serves clients: the listening socket, the services and the transport settings.

use super::ServerError;
use crate::context::Context;
use crate::limits::{CONNECTION_STREAMS_MAX, KEEPALIVE, MESSAGE_BYTES_MAX};
use crate::memory::MemoryPool;
use crate::middleware::{Middleware, PortMemory};
use crate::only_grpc::OnlyGrpc;
use crate::receiving::{Receiver, StreamPools};
use crate::sending::Responses;
use crate::services::{
    Accesses, Actions, Clusters, Keys, Namespaces, Plans, Quotas, Reflection, Streams, Workflows,
};
use crate::workers::Workers;
use flotilla_api::FILE_DESCRIPTOR_SET;
use flotilla_api::v1::access_service_server::AccessServiceServer;
use flotilla_api::v1::action_service_server::ActionServiceServer;
use flotilla_api::v1::cluster_service_server::ClusterServiceServer;
use flotilla_api::v1::kv_service_server::KvServiceServer;
use flotilla_api::v1::namespace_service_server::NamespaceServiceServer;
use flotilla_api::v1::plan_service_server::PlanServiceServer;
use flotilla_api::v1::quota_service_server::QuotaServiceServer;
use flotilla_api::v1::stream_service_server::StreamServiceServer;
use flotilla_api::v1::worker_service_server::WorkerServiceServer;
use flotilla_api::v1::workflow_service_server::WorkflowServiceServer;
use flotilla_leader::Hub;
use flotilla_replica::Arrivals;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::http::Request;
use tonic::codegen::{Body as HttpBody, Bytes, StdError};
use tonic::service::Routes;
use tower::util::MapRequestLayer;

/// Flow control: the unread bytes that a client may send on one stream.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Flow control: the unread bytes on all streams of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// The running transport.
pub(super) type Serving = JoinHandle<Result<(), tonic::transport::Error>>;

/// Binds the port for clients and returns the bound address.
pub(super) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// The node's services and reflection.
pub(super) fn routes(context: &Arc<Context>, hub: &Arc<Hub>) -> Result<Routes, ServerError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| ServerError::Serve(Box::new(error)))?;
    let workflows = WorkflowServiceServer::new(Workflows::new(context.clone()));
    let actions = ActionServiceServer::new(Actions::new(context.clone()));
    let workers = WorkerServiceServer::new(Workers::new(context.clone(), hub.clone()));
    let plans = PlanServiceServer::new(Plans::new(context.clone()));
    let clusters = ClusterServiceServer::new(Clusters::new(context.clone()));
    let keys = KvServiceServer::new(Keys::new(context.clone()));
    let namespaces = NamespaceServiceServer::new(Namespaces::new(context.clone()));
    let accesses = AccessServiceServer::new(Accesses::new(context.clone()));
    let quotas = QuotaServiceServer::new(Quotas::new(context.clone()));
    let streams = StreamServiceServer::new(Streams::new(context.clone()));
    let routes = Routes::new(workflows.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(actions.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(plans.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(workers.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(clusters.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(keys.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(accesses.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(namespaces.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(quotas.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(streams.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(Reflection::new(context.clone(), reflection));
    Ok(routes)
}

/// Serves clients until `context.shutdown` is cancelled and their connections have ended.
pub(super) fn serve(
    context: &Context,
    intake: &Intake,
    arriving: Arrivals,
    routes: Routes,
) -> Serving {
    let shutdown = context.shutdown.clone();
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONNECTION_STREAMS_MAX)
        .layer(OnlyGrpc)
        .layer(intake.layers())
        .add_routes(routes)
        .serve_with_incoming_shutdown(arriving, shutdown.cancelled_owned());
    tokio::spawn(server)
}

/// How requests arrive and how responses are sent, at ports that share memory for them. When that memory is full, the oldest
/// of all their incomplete requests ends.
#[derive(Clone)]
pub(crate) struct Intake {
    middleware: Middleware,
    receiver: Receiver,
}

impl Intake {
    /// The intake of ports whose requests and responses use this memory.
    pub(crate) fn new(context: &Context, requests: &MemoryPool, responses: &MemoryPool) -> Self {
        let memory = &context.memory;
        let responses = Responses::new(responses.clone(), memory.views.clone());
        let streams = StreamPools {
            streams: memory.worker_streams.clone(),
            messages: memory.worker_messages.clone(),
        };
        let receiver = Receiver::new(streams, responses.clone());
        let middleware = Middleware::new(
            context.node_gateway.home().replica().leadership(),
            context.metrics.requests.clone(),
            context.tracer.clone(),
            PortMemory {
                requests: requests.clone(),
                responses,
                receiver: receiver.clone(),
            },
        );
        Self {
            middleware,
            receiver,
        }
    }

    /// What wraps the services at one port.
    pub(crate) fn layers<B>(
        &self,
    ) -> (
        Middleware,
        MapRequestLayer<impl Fn(Request<B>) -> Request<Body> + Clone + use<B>>,
    )
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<StdError>,
    {
        let receiver = self.receiver.clone();
        let receiving = MapRequestLayer::new(move |request: Request<B>| {
            receiver.bounded(request.map(Body::new))
        });
        (self.middleware.clone(), receiving)
    }
}
