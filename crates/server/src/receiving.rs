//! How requests arrive: how much memory and time they may take.
//!
//! The parts of a request count against the node's memory as they arrive, before anything is decoded. A caller whose request
//! never ends would hold its memory, so each request that is one message has a deadline, and the oldest requests that have
//! arrived in part end when there are too many or no memory is left. Streams have their own limits.

use crate::deadline;
use crate::errors::Refusal;
use crate::limits::{MESSAGE_COPIES, PARTIAL_REQUESTS_MAX, RECEIVING_MAX, REQUEST_BYTES};
use crate::memory::{MemoryPool, Reservation};
use hyper::body::{Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::Request;

/// The methods whose requests are streams.
const STREAMS: [&str; 2] = [
    "/flotilla.v1.WorkerService/Stream",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// The memory of one request, shared by what receives it and by what answers it.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory {
    reservation: Arc<Mutex<Reservation>>,
}

/// The requests that have arrived in part, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    partial: Arc<Mutex<PartialRequests>>,
}

#[derive(Debug, Default)]
struct PartialRequests {
    number_next: u64,
    /// Dropping one ends its request.
    by_number: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A request's place among those that have arrived in part, until it is dropped.
#[derive(Debug)]
struct Place {
    receiver: Receiver,
    number: u64,
    ended: oneshot::Receiver<()>,
}

/// The node has no memory for a request.
pub(crate) fn overloaded() -> Refusal {
    Refusal::overloaded("expected memory for the request, but requests in progress use all of it")
}

impl RequestMemory {
    /// Reserves what a request needs beside its message; `None` if that is not free.
    pub(crate) fn reserve(pool: &MemoryPool) -> Option<Self> {
        let reservation = pool.try_reserve(REQUEST_BYTES)?;
        Some(Self {
            reservation: Arc::new(Mutex::new(reservation)),
        })
    }

    /// Reserves what `bytes` more of its message need; false if that is not free.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        let mut reservation = self
            .reservation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        reservation.grow(bytes.saturating_mul(MESSAGE_COPIES))
    }
}

impl Receiver {
    /// Bounds the memory and the time that a request takes to arrive.
    pub(crate) fn bounded(&self, mut request: Request<Body>) -> Request<Body> {
        let memory = request.extensions_mut().remove::<RequestMemory>();
        let Some(memory) = memory.filter(|_| !STREAMS.contains(&request.uri().path())) else {
            return request;
        };
        let latest = Instant::now() + RECEIVING_MAX;
        let given = deadline::in_headers(request.headers());
        let until = given.map_or(latest, |given| given.min(latest));
        request.map(|body| {
            Body::new(Receiving {
                body,
                memory,
                receiver: self.clone(),
                until,
                waiting: None,
            })
        })
    }

    /// A place for a request that has arrived in part.
    fn place(&self) -> Place {
        let mut partial = self.partial();
        if partial.by_number.len() >= PARTIAL_REQUESTS_MAX {
            partial.by_number.pop_first();
        }
        let (held, ended) = oneshot::channel();
        let number = partial.number_next;
        partial.number_next += 1;
        partial.by_number.insert(number, held);
        Place {
            receiver: self.clone(),
            number,
            ended,
        }
    }

    /// Ends the oldest request that has arrived in part.
    fn end_oldest(&self) {
        self.partial().by_number.pop_first();
    }

    fn partial(&self) -> MutexGuard<'_, PartialRequests> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.receiver.partial().by_number.remove(&self.number);
    }
}

/// A body that fails once its deadline has passed, or when the node has no memory for it.
struct Receiving {
    body: Body,
    memory: RequestMemory,
    receiver: Receiver,
    until: Instant,
    // Most requests arrive as a whole and never wait.
    waiting: Option<(Place, Pin<Box<Sleep>>)>,
}

impl Receiving {
    /// Counts a part that has arrived.
    fn received(&self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Status> {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if self.memory.grow(bytes) {
            return Ok(frame);
        }
        // It frees its memory for the requests that come next.
        self.receiver.end_oldest();
        Err(overloaded().into())
    }

    /// Waits until the request must end although a part is missing.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let (receiver, until) = (&self.receiver, self.until);
        let (place, deadline) = self
            .waiting
            .get_or_insert_with(|| (receiver.place(), Box::pin(sleep_until(until))));
        if Pin::new(&mut place.ended).poll(context).is_ready() {
            return Poll::Ready(overloaded().into());
        }
        ready!(deadline.as_mut().poll(context));
        let message = "expected the request to arrive in time, but a part of it is missing";
        Poll::Ready(Status::deadline_exceeded(message))
    }
}

impl hyper::body::Body for Receiving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.received(frame))),
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => Poll::Ready(Some(Err(ready!(self.poll_end(context))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_api::FILE_DESCRIPTOR_SET;
    use futures::{FutureExt, StreamExt, stream};
    use hyper::body::Body as _;
    use prost::Message;
    use prost_types::FileDescriptorSet;
    use std::convert::Infallible;
    use std::time::Duration;
    use tonic::Code;

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
            let request = Receiver::default().bounded(silent(CALL, timeout));
            let status = status(&mut request.into_body()).await;
            assert_eq!(status.code(), Code::DeadlineExceeded);
            assert_eq!(
                begun.elapsed().as_millis(),
                expected.as_millis(),
                "{timeout:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent() {
        let request = Receiver::default().bounded(silent(STREAMS[0], Some("1S")));
        let mut body = request.into_body();
        let waited = tokio::time::timeout(2 * RECEIVING_MAX, status(&mut body)).await;
        assert!(waited.is_err());
    }

    #[tokio::test]
    async fn what_arrives_counts_and_ends_without_memory() {
        let pool = MemoryPool::new(2 * REQUEST_BYTES + 2 * MESSAGE_COPIES * 1_000);
        let receiver = Receiver::default();
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
        let receiver = Receiver::default();
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
