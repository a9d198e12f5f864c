//! The gRPC services of a host at the peer port.

use crate::network::calls::{PeerCalls, PeerError, PeerResult};
use crate::network::protocol::Sender;
use prost::Message;
use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use tonic::Status;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Body, BoxFuture, Bytes, Service, StdError};
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::service::Routes;

/// The gRPC services that the host of a replica offers to other members, at the port of the replica. Only members reach
/// them. They end when the host drops this value: the services may hold the replica, so the replica does not hold them.
#[derive(Default)]
pub struct HostServices {
    routes: Arc<OnceLock<Routes>>,
}

impl HostServices {
    /// Sets the services. Until then, every call is refused as unavailable: the port is open before the replica has started,
    /// and the host may need the replica for its services. Later calls of this function have no effect.
    pub fn provide(&self, routes: Routes) {
        self.routes.get_or_init(|| routes);
    }

    /// Passes calls to the services.
    #[must_use]
    pub fn handle(&self) -> HostServicesHandle {
        HostServicesHandle(Arc::downgrade(&self.routes))
    }
}

/// The metadata in which a call of a service of the host states its sender.
const SENDER: &str = "flo-sender-bin";

/// States the cluster, the sender and the receiver in the metadata of a call to a service of a host. A node refuses calls without it, from
/// another cluster or for another node.
#[derive(Clone, Debug)]
pub struct HostCallSender(BinaryMetadataValue);

impl HostCallSender {
    pub(crate) fn new(sender: &Sender) -> Self {
        Self(BinaryMetadataValue::from_bytes(&sender.encode_to_vec()))
    }

    /// States it in the metadata of a call.
    pub fn state(&self, metadata: &mut MetadataMap) {
        metadata.insert_bin(SENDER, self.0.clone());
    }

    /// Checks the sender that the metadata of a call states, on behalf of the node that serves it.
    ///
    /// # Errors
    /// [`PeerError`] if the metadata states no sender, or as [`PeerCalls::check_sender`].
    pub fn check(metadata: &MetadataMap, serving: &dyn PeerCalls) -> PeerResult<()> {
        let sender = Self::of(metadata).ok_or_else(|| {
            let text = "expected the sender of the call, but the metadata does not state it";
            PeerError::Refused(text.to_owned())
        })?;
        serving.check_sender(sender)
    }

    /// The sender that a call states.
    fn of(metadata: &MetadataMap) -> Option<Sender> {
        let bytes = metadata.get_bin(SENDER)?.to_bytes().ok()?;
        Sender::decode(bytes).ok()
    }
}

/// Passes calls to the services of the host, as long as it offers them.
#[derive(Clone, Default)]
pub struct HostServicesHandle(Weak<OnceLock<Routes>>);

impl HostServicesHandle {
    fn routes(&self) -> Option<Routes> {
        self.0.upgrade()?.get().cloned()
    }
}

impl<B> Service<Request<B>> for HostServicesHandle
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Routes are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(mut routes) = self.routes() else {
            let text = "the node is starting or stopping and cannot serve this call";
            return Box::pin(ready(Ok(Status::unavailable(text).into_http())));
        };
        Box::pin(routes.call(request))
    }
}
