//! How requests arrive: how much memory and time they may take.
//!
//! The parts of a request count against the node's memory as they arrive, before anything is decoded. A caller whose request
//! never ends would hold its memory, so each message has a deadline, and the oldest messages that have arrived in part end
//! when there are too many or no memory is left.

mod arrived;
mod assembly;
mod incomplete;
mod request;
mod stream;

pub(crate) use arrived::{ArrivedMessages, MessageMemory};
pub(crate) use request::RequestMemory;

use crate::deadline;
use crate::errors::Refusal;
use crate::limits::{PARTIAL_REQUESTS_MAX, RECEIVING_MAX};
use crate::memory::MemoryPool;
use crate::sending::Responses;
use incomplete::IncompleteMessages;
use request::ReceivingRequest;
use std::time::Duration;
use stream::StreamMessages;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codegen::http::Request;

/// The stream whose messages the service takes from [`ArrivedMessages`].
const WORKER_STREAM: &str = "/flotilla.v1.WorkerService/Stream";
/// The methods whose requests are streams.
const STREAMS: [&str; 2] = [
    WORKER_STREAM,
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// Receives the requests at one port.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    requests: IncompleteMessages,
    /// Unsent responses. They may hold the memory of requests if callers do not read.
    responses: Responses,
    /// One place for each open stream.
    streams: MemoryPool,
    messages: StreamMessages,
}

/// The memory for streams of requests.
#[derive(Clone, Debug)]
pub(crate) struct StreamPools {
    /// For each open stream.
    pub(crate) streams: MemoryPool,
    /// For the messages that they have received, until they are handled.
    pub(crate) messages: MemoryPool,
}

/// The node has no memory for a request.
pub(crate) fn overloaded() -> Refusal {
    Refusal::overloaded("expected memory for the request, but requests in progress use all of it")
}

impl Receiver {
    /// Receives requests, and messages of streams within `pools`. Callers that do not read their `responses` are
    /// disconnected when requests need memory.
    pub(crate) fn new(pools: StreamPools, responses: Responses) -> Self {
        Self {
            requests: IncompleteMessages::new(PARTIAL_REQUESTS_MAX),
            streams: pools.streams,
            messages: StreamMessages::new(pools.messages, responses.clone()),
            responses,
        }
    }

    /// Makes memory for other requests: ends the oldest incomplete request, and disconnects a caller that does not read.
    pub(crate) fn free_memory(&self) {
        self.requests.end_oldest(Duration::ZERO);
        self.responses.close_unread();
    }

    /// Bounds the memory and the time that a request takes to arrive.
    pub(crate) fn bounded(&self, mut request: Request<Body>) -> Request<Body> {
        let Some(memory) = request.extensions_mut().remove::<RequestMemory>() else {
            return request;
        };
        if STREAMS.contains(&request.uri().path()) {
            return self.bounded_stream(request);
        }
        let latest = Instant::now() + RECEIVING_MAX;
        let given = deadline::in_headers(request.headers());
        let until = given.map_or(latest, |given| given.min(latest));
        request.map(|body| Body::new(ReceivingRequest::new(body, memory, self, until)))
    }

    fn bounded_stream(&self, mut request: Request<Body>) -> Request<Body> {
        let arrived = (request.uri().path() == WORKER_STREAM).then(ArrivedMessages::default);
        if let Some(arrived) = arrived.clone() {
            request.extensions_mut().insert(arrived);
        }
        request.map(|body| Body::new(self.messages.receive(body, &self.streams, arrived)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MESSAGE_COPIES, REQUEST_BYTES};
    use flotilla_api::FILE_DESCRIPTOR_SET;
    use futures::{FutureExt, StreamExt, stream};
    use hyper::body::{Body as _, Frame};
    use prost::Message;
    use prost_types::FileDescriptorSet;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::time::Duration;
    use tonic::codegen::Bytes;
    use tonic::{Code, Status};

    fn receiver() -> Receiver {
        let pool = MemoryPool::new(1 << 20);
        let streams = StreamPools {
            streams: pool.clone(),
            messages: pool.clone(),
        };
        Receiver::new(streams, Responses::new(pool.clone(), pool))
    }

    const CALL: &str = "/flotilla.v1.Any/Call";

    /// A request of which `part` arrives, and nothing after it.
    fn partial(pool: &MemoryPool, part: Vec<u8>) -> Request<Body> {
        let part = stream::iter([Ok::<_, Infallible>(Bytes::from(part))]);
        let body = axum::body::Body::from_stream(part.chain(stream::pending()));
        let mut request = Request::new(Body::new(body));
        *request.uri_mut() = CALL.parse().expect("a path");
        let memory = RequestMemory::reserve(pool).expect("it is free");
        request.extensions_mut().insert(memory);
        request
    }

    /// A request of which no part arrives.
    fn silent(path: &str, timeout: Option<&str>) -> Request<Body> {
        let mut request = partial(&MemoryPool::new(REQUEST_BYTES), Vec::new());
        *request.uri_mut() = path.parse().expect("a path");
        if let Some(timeout) = timeout {
            let timeout = timeout.parse().expect("a header");
            request.headers_mut().insert("grpc-timeout", timeout);
        }
        request
    }

    async fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, Status>> {
        std::future::poll_fn(move |context| Pin::new(&mut *body).poll_frame(context)).await
    }

    /// The status with which a request ends before it has arrived.
    async fn status(body: &mut Body) -> Status {
        loop {
            match next(body).await.expect("it does not end") {
                Ok(_) => {}
                Err(status) => return status,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_arrive_ends_at_its_deadline() {
        for (timeout, expected) in [
            (None, RECEIVING_MAX),
            (Some("900S"), RECEIVING_MAX),
            (Some("2S"), Duration::from_millis(1_800)),
        ] {
            let begun = Instant::now();
            let request = receiver().bounded(silent(CALL, timeout));
            let status = status(&mut request.into_body()).await;
            assert_eq!(status.code(), Code::DeadlineExceeded);
            assert_eq!(
                begun.elapsed().as_millis(),
                expected.as_millis(),
                "{timeout:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_arrives_counts_and_ends_without_memory() {
        let pool = MemoryPool::new(2 * REQUEST_BYTES + 2 * MESSAGE_COPIES * 1_000);
        let receiver = receiver();
        let bounded = |bytes| receiver.bounded(partial(&pool, vec![0; bytes]));
        let mut oldest = bounded(1_000).into_body();
        assert!(next(&mut oldest).await.is_some_and(|part| part.is_ok()));
        assert!(status(&mut oldest).now_or_never().is_none(), "it waits");
        let reserved = REQUEST_BYTES + MESSAGE_COPIES * 1_000;
        assert_eq!(pool.bytes_reserved(), reserved);
        let refused = status(&mut bounded(1_001).into_body()).await;
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let ended = status(&mut oldest).await;
        assert_eq!(ended.code(), Code::ResourceExhausted, "it was the oldest");
        drop(oldest);
        assert_eq!(pool.bytes_reserved(), 0);
        let mut next_one = bounded(1_001).into_body();
        assert!(next(&mut next_one).await.is_some_and(|part| part.is_ok()));
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_partial_requests_ends() {
        let pool = MemoryPool::new(2 * PARTIAL_REQUESTS_MAX * REQUEST_BYTES);
        let receiver = receiver();
        let mut bodies = Vec::new();
        for _ in 0..=PARTIAL_REQUESTS_MAX {
            let mut body = receiver.bounded(partial(&pool, vec![])).into_body();
            assert!(status(&mut body).now_or_never().is_none());
            bodies.push(body);
        }
        let ended = status(&mut bodies[0]).now_or_never().expect("it ended");
        assert_eq!(ended.code(), Code::ResourceExhausted);
        assert!(status(&mut bodies[1]).now_or_never().is_none());
    }

    #[test]
    fn the_methods_whose_requests_are_streams_are_known() {
        for files in [FILE_DESCRIPTOR_SET, tonic_health::pb::FILE_DESCRIPTOR_SET] {
            let files = FileDescriptorSet::decode(files).expect("descriptors");
            for file in &files.file {
                for service in &file.service {
                    for method in &service.method {
                        let path =
                            format!("/{}.{}/{}", file.package(), service.name(), method.name());
                        let is_stream = STREAMS.contains(&path.as_str());
                        assert_eq!(is_stream, method.client_streaming(), "{path}");
                    }
                }
            }
        }
    }
}
