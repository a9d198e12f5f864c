//! How long a request may take to arrive.
//!
//! A caller whose request never ends would hold its place among the requests in progress. So each request that is one message
//! has a deadline; streams have their own limits.

use crate::deadline;
use crate::limits::RECEIVING_MAX;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
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

/// Ends a request that has not arrived by its deadline, or within [`RECEIVING_MAX`].
pub(crate) fn within_deadline(request: Request<Body>) -> Request<Body> {
    if STREAMS.contains(&request.uri().path()) {
        return request;
    }
    let latest = Instant::now() + RECEIVING_MAX;
    let given = deadline::in_headers(request.headers());
    let until = given.map_or(latest, |given| given.min(latest));
    request.map(|body| {
        Body::new(Receiving {
            body,
            deadline: Box::pin(sleep_until(until)),
        })
    })
}

/// A body that fails once its deadline has passed.
struct Receiving {
    body: Body,
    deadline: Pin<Box<Sleep>>,
}

impl hyper::body::Body for Receiving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(self.deadline.as_mut().poll(context));
        let message = "expected the request to arrive in time, but a part of it is missing";
        Poll::Ready(Some(Err(Status::deadline_exceeded(message))))
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
    use futures::stream;
    use hyper::body::Body as _;
    use prost::Message;
    use prost_types::FileDescriptorSet;
    use std::convert::Infallible;
    use std::time::Duration;

    /// A request of which no part arrives.
    fn silent(path: &str, timeout: Option<&str>) -> Request<Body> {
        let parts = stream::pending::<Result<Bytes, Infallible>>();
        let body = Body::new(axum::body::Body::from_stream(parts));
        let mut request = Request::builder().uri(path);
        if let Some(timeout) = timeout {
            request = request.header("grpc-timeout", timeout);
        }
        request.body(body).expect("a request")
    }

    async fn next(request: Request<Body>) -> Option<Result<Frame<Bytes>, Status>> {
        let mut body = request.into_body();
        std::future::poll_fn(move |context| Pin::new(&mut body).poll_frame(context)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_arrive_ends_at_its_deadline() {
        for (timeout, expected) in [
            (None, RECEIVING_MAX),
            (Some("900S"), RECEIVING_MAX),
            (Some("2S"), Duration::from_millis(1_800)),
        ] {
            let begun = Instant::now();
            let frame = next(within_deadline(silent("/flotilla.v1.Any/Call", timeout))).await;
            let error = frame.expect("an error").expect_err("it did not arrive");
            assert_eq!(error.code(), tonic::Code::DeadlineExceeded);
            assert_eq!(
                begun.elapsed().as_millis(),
                expected.as_millis(),
                "{timeout:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent() {
        let request = within_deadline(silent(STREAMS[0], Some("1S")));
        let waited = tokio::time::timeout(2 * RECEIVING_MAX, next(request)).await;
        assert!(waited.is_err());
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
