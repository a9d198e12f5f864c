//! The service that describes the node's services (X16).

use crate::access::{CallContext, Needs};
use crate::context::Context;
use flotilla_replica::Caller;
use std::mem;
use std::sync::Arc;
use std::task::{self, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Service};
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;

/// Reflection for callers that the cluster admits: once it is closed, those with a valid credential.
#[derive(Clone)]
pub(crate) struct Reflection<S> {
    node: Arc<Context>,
    inner: S,
}

impl<S> Reflection<S> {
    /// Guards `inner`, the service itself.
    pub(crate) fn new(node: Arc<Context>, inner: S) -> Self {
        Self { node, inner }
    }
}

impl<S: NamedService> NamedService for Reflection<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Reflection<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Future: Send> + Clone + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Response<Body>, S::Error>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let node = self.node.clone();
        // The service that is ready serves this call.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        Box::pin(async move {
            let metadata = MetadataMap::from_headers(request.headers().clone());
            let caller = request.extensions().get::<Caller>();
            let shown = (&metadata, caller);
            match CallContext::check_caller(&node, Needs::Credential, shown).await {
                Ok(()) => inner.call(request).await,
                Err(refusal) => Ok(Status::from(refusal).into_http()),
            }
        })
    }
}
