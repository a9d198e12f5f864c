//! The middleware that wraps every gRPC service: it counts requests, opens their log span, reserves
//! memory for them, and names the leader in the response.

use crate::access::Needs;
use crate::memory::MemoryPool;
use crate::metrics::Requests;
use crate::receiving::{self, Receiver, RequestMemory};
use crate::sending::{ResponseMemory, Responses};
use crate::span;
use crate::traces::{TracedCall, Tracer};
use flotilla_replica::{Caller, Leader, Leadership};
use std::sync::Arc;
use std::task::{self, Poll};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::codegen::{BoxFuture, Service};
use tonic::{Code, Status};
use tower::Layer;
use tracing::Instrument;

/// The metadata that names the client endpoint of the leader of the request's namespace.
const LEADER: HeaderName = HeaderName::from_static("flo-leader");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Wraps a node's services.
#[derive(Clone)]
pub(crate) struct Middleware {
    leadership: watch::Receiver<Leadership>,
    requests: Arc<Requests>,
    tracer: Option<Arc<Tracer>>,
    memory: PortMemory,
}

/// The memory for the calls at one port.
#[derive(Clone)]
pub(crate) struct PortMemory {
    /// For requests in progress.
    pub(crate) requests: MemoryPool,
    /// For responses, until they are sent.
    pub(crate) responses: Responses,
    /// Receives the requests. It can end those that are incomplete.
    pub(crate) receiver: Receiver,
}

impl PortMemory {
    /// Reserves memory for a request, and returns it with that of its response; `None` if it is not free.
    fn reserve<Q>(&self, request: &Request<Q>) -> Option<(RequestMemory, ResponseMemory)> {
        let Some(memory) = RequestMemory::reserve(&self.requests) else {
            // Incomplete requests and unsent responses may use it.
            self.receiver.free_memory();
            return None;
        };
        let caller = request.extensions().get::<Caller>().cloned();
        let caller = caller.unwrap_or_default();
        let of_response = self.responses.memory_for(caller, memory.clone());
        Some((memory, of_response))
    }
}

/// The services behind the middleware.
#[derive(Clone)]
pub(crate) struct MiddlewareService<S> {
    middleware: Middleware,
    inner: S,
}

impl Middleware {
    /// The middleware of a node that follows `leadership`, counts its `requests`, traces them with
    /// `tracer`, and reserves their `memory` and that of their responses.
    pub(crate) fn new(
        leadership: watch::Receiver<Leadership>,
        requests: Arc<Requests>,
        tracer: Option<Arc<Tracer>>,
        memory: PortMemory,
    ) -> Self {
        Self {
            leadership,
            requests,
            tracer,
            memory,
        }
    }

    /// The leader as a header value; `None` if there is no leader or its address is not a valid
    /// header value. The only Raft group has all namespaces, so its leader is that of each request.
    fn leader(&self) -> Option<HeaderValue> {
        let leadership = self.leadership.borrow();
        let Leader { client_address, .. } = leadership.leader.as_ref()?;
        HeaderValue::from_str(client_address).ok()
    }
}

impl<S> Layer<S> for Middleware {
    type Service = MiddlewareService<S>;

    fn layer(&self, inner: S) -> MiddlewareService<S> {
        MiddlewareService {
            middleware: self.clone(),
            inner,
        }
    }
}

impl<S, Q> Service<Request<Q>> for MiddlewareService<S>
where
    S: Service<Request<Q>, Response = Response<Body>, Future: Send + 'static>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Response<Body>, S::Error>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let middleware = self.middleware.clone();
        let path = request.uri().path();
        let needs = Needs::of_path(path);
        let in_flight = middleware.requests.begin(path);
        let span = span::of_request(path, request.headers());
        let traced = TracedCall::begin(middleware.tracer.as_ref(), path, request.headers());
        if let Some(needs) = needs {
            request.extensions_mut().insert(needs);
        }
        if let Some(traced) = &traced {
            request.extensions_mut().insert(traced.trace());
        }
        let inner_call = middleware
            .memory
            .reserve(&request)
            .map(|(of_request, of_response)| {
                request.extensions_mut().insert(of_request);
                request.extensions_mut().insert(of_response.clone());
                (self.inner.call(request), of_response)
            });
        let serving = async move {
            let mut response = match inner_call {
                Some((inner_call, memory)) => memory.keep_until_sent(inner_call.await?),
                None => Status::from(receiving::overloaded()).into_http(),
            };
            if let Some(leader) = middleware.leader() {
                response.headers_mut().insert(LEADER, leader);
            }
            let code = code(response.headers());
            tracing::debug!(?code, "answered");
            in_flight.record_response(code);
            if let Some(traced) = traced {
                traced.record_response(code);
            }
            Ok(response)
        };
        Box::pin(serving.instrument(span))
    }
}

/// The status with which a response begins: OK if it has no status yet.
fn code(headers: &HeaderMap) -> Code {
    let status = headers.get(GRPC_STATUS);
    status.map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REQUEST_BYTES;
    use crate::receiving::StreamPools;
    use flotilla_engine::NodeId;
    use futures::future::{Ready, ready};
    use std::convert::Infallible;

    #[derive(Clone)]
    struct Echo;

    impl Service<Request<()>> for Echo {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            ready(Ok(Response::new(Body::empty())))
        }
    }

    fn leadership(address: Option<&str>) -> Leadership {
        let leader = address.map(|address| Leader {
            node_id: NodeId(2),
            client_address: address.to_owned(),
            peer_address: String::new(),
        });
        Leadership {
            leader,
            ..Leadership::default()
        }
    }

    fn middleware(leadership: watch::Receiver<Leadership>, memory: MemoryPool) -> Middleware {
        let responses = Responses::new(memory.clone(), memory.clone());
        let streams = StreamPools {
            streams: memory.clone(),
            messages: memory.clone(),
        };
        let memory = PortMemory {
            receiver: Receiver::new(streams, responses.clone()),
            responses,
            requests: memory,
        };
        Middleware::new(leadership, Arc::new(Requests::new()), None, memory)
    }

    async fn call(middleware: &Middleware) -> Response<Body> {
        middleware.layer(Echo).call(Request::new(())).await.unwrap()
    }

    #[tokio::test]
    async fn every_reply_names_the_leader_that_is_known_then() {
        let (sender, receiver) = watch::channel(leadership(None));
        let middleware = middleware(receiver, MemoryPool::new(REQUEST_BYTES));
        assert_eq!(call(&middleware).await.headers().get(LEADER), None);
        sender.send_replace(leadership(Some("b:9000")));
        assert_eq!(call(&middleware).await.headers()[LEADER], "b:9000");
        sender.send_replace(leadership(Some("b\n")));
        assert_eq!(call(&middleware).await.headers().get(LEADER), None);
    }

    #[tokio::test]
    async fn a_full_node_turns_requests_away_and_names_the_leader() {
        let (_sender, receiver) = watch::channel(leadership(Some("b:9000")));
        let memory = MemoryPool::new(2 * REQUEST_BYTES);
        let middleware = middleware(receiver, memory.clone());
        let reserved = memory.try_reserve(REQUEST_BYTES + 1).expect("it is free");
        let response = call(&middleware).await;
        assert_eq!(response.headers()["grpc-status"], "8");
        assert_eq!(response.headers()[LEADER], "b:9000");
        drop(reserved);
        assert_eq!(call(&middleware).await.headers().get("grpc-status"), None);
        assert_eq!(memory.bytes_reserved(), 0, "it is answered");
    }
}
