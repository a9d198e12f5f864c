//! Refuses requests that are not gRPC calls, by their media type (X16).
//!
//! A page of another site can make a browser send text, forms and multipart bodies to a node, with the client certificate of
//! the user. For any other media type, the browser first asks the node, which does not allow it.

use std::future::ready;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, Request, Response, StatusCode};
use tonic::codegen::{BoxFuture, Service};
use tower::Layer;

/// The media type of calls.
const GRPC: &[u8] = b"application/grpc";

/// Wraps the services at a port that serves gRPC alone. HTTP has rules for its own media types (H14).
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnlyGrpc;

/// The services behind [`OnlyGrpc`].
#[derive(Clone)]
pub(crate) struct OnlyGrpcService<S>(S);

impl<S> Layer<S> for OnlyGrpc {
    type Service = OnlyGrpcService<S>;

    fn layer(&self, inner: S) -> OnlyGrpcService<S> {
        OnlyGrpcService(inner)
    }
}

impl<S, Q> Service<Request<Q>> for OnlyGrpcService<S>
where
    S: Service<Request<Q>, Response = Response<Body>, Future: Send + 'static>,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Response<Body>, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        if is_grpc(request.headers()) {
            return Box::pin(self.0.call(request));
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Box::pin(ready(Ok(response)))
    }
}

/// Whether the request states the media type of gRPC, perhaps with a format such as `+proto` or with parameters.
fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE);
    let rest = media_type.and_then(|media_type| media_type.as_bytes().strip_prefix(GRPC));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}
