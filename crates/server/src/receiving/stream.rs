//! The messages of a stream that a caller sends.
//!
//! A message counts against the memory of requests from its first byte until the stream is read again: by then it is
//! handled. Its prefix says how long it is, so its memory is reserved before the rest of it is read. Streams wait for memory in
//! their order, because a worker that lost its stream would return all of its tasks. A message that has begun must arrive in
//! time, or its stream ends: it would keep the memory from others.

use crate::limits::{MESSAGE_BYTES_MAX, MESSAGE_COPIES, RECEIVING_MAX};
use crate::memory::{MemoryPool, Reservation};
use futures::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// The prefix of a message in gRPC: a flag, and the length of the message.
const PREFIX_BYTES: usize = 5;

/// A body whose messages count.
pub(super) struct MessageStream {
    body: Body,
    pool: MemoryPool,
    /// What has arrived and is not passed on: the message to which it belongs waits for memory.
    arrived: VecDeque<Bytes>,
    prefix: Vec<u8>,
    /// What is missing of the message whose prefix has arrived. In bytes.
    missing: usize,
    /// Of the messages that were passed on and may not be handled yet, and of the next one.
    memory: Vec<Reservation>,
    reserving: Option<BoxFuture<'static, Option<Reservation>>>,
    /// Until when the message that has begun must be complete.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl MessageStream {
    /// The messages of `body`, within the memory of `pool`.
    pub(super) fn new(body: Body, pool: MemoryPool) -> Self {
        Self {
            body,
            pool,
            arrived: VecDeque::new(),
            prefix: Vec::with_capacity(PREFIX_BYTES),
            missing: 0,
            memory: Vec::new(),
            reserving: None,
            deadline: None,
        }
    }

    /// Whether no message has begun.
    fn is_between_messages(&self) -> bool {
        self.missing == 0 && self.prefix.is_empty()
    }

    /// Releases the memory of all messages but the incomplete one: the stream is read again, so they are handled.
    fn release_handled(&mut self) {
        let is_incomplete = self.missing > 0 && self.reserving.is_none();
        let incomplete = is_incomplete.then(|| self.memory.pop()).flatten();
        self.memory.clear();
        self.memory.extend(incomplete);
    }

    /// Reads a part up to the end of the message or prefix that it continues; returns how much that is.
    fn advance(&mut self, part: &[u8]) -> usize {
        if self.missing > 0 {
            let bytes = part.len().min(self.missing);
            self.missing -= bytes;
            if self.missing == 0 {
                self.deadline = None;
            }
            return bytes;
        }
        let bytes = part.len().min(PREFIX_BYTES - self.prefix.len());
        self.prefix.extend_from_slice(&part[..bytes]);
        if let [_, length @ ..] = &self.prefix[..]
            && let Ok(length) = <[u8; 4]>::try_from(length)
        {
            self.prefix.clear();
            self.begin(u32::from_be_bytes(length) as usize);
        }
        bytes
    }

    /// Begins a message of `bytes` bytes.
    fn begin(&mut self, bytes: usize) {
        self.missing = bytes;
        // A longer one is refused once its prefix is read.
        let memory = bytes.min(MESSAGE_BYTES_MAX) * MESSAGE_COPIES;
        match self.pool.try_reserve(memory) {
            Some(reservation) => self.memory.push(reservation),
            None => {
                let pool = self.pool.clone();
                self.reserving = Some(Box::pin(async move { pool.reserve(memory).await }));
            }
        }
    }

    /// Waits for the memory of the message that has begun.
    fn poll_memory(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(reserving) = &mut self.reserving {
            // A pool holds the largest message.
            self.memory.extend(ready!(reserving.as_mut().poll(context)));
            self.reserving = None;
        }
        Poll::Ready(())
    }

    /// Passes on what has arrived, up to the end of a message.
    fn pass_on(&mut self) -> Option<Bytes> {
        let mut part = self.arrived.pop_front()?;
        let mut end = 0;
        while end < part.len() && self.reserving.is_none() {
            end += self.advance(&part[end..]);
        }
        if end < part.len() {
            self.arrived.push_front(part.split_off(end));
        }
        Some(part)
    }

    /// Waits until the message that has begun must be complete.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if self.is_between_messages() {
            self.deadline = None;
            return Poll::Pending;
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(RECEIVING_MAX)));
        ready!(deadline.as_mut().poll(context));
        let message = "expected the message to arrive in time, but a part of it is missing";
        Poll::Ready(Status::deadline_exceeded(message))
    }
}

impl hyper::body::Body for MessageStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        this.release_handled();
        ready!(this.poll_memory(context));
        if let Some(part) = this.pass_on() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(part) => {
                    this.arrived.push_back(part);
                    let part = this.pass_on();
                    Poll::Ready(part.map(|part| Ok(Frame::data(part))))
                }
                Err(frame) => Poll::Ready(Some(Ok(frame))),
            },
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => Poll::Ready(Some(Err(ready!(this.poll_deadline(context))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.arrived.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use hyper::body::Body as _;
    use std::convert::Infallible;
    use tokio::sync::mpsc;
    use tokio_stream::StreamExt;
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::Code;

    type Sender = mpsc::Sender<Vec<u8>>;

    fn stream(pool: &MemoryPool) -> (Sender, MessageStream) {
        let (sender, parts) = mpsc::channel(256);
        let parts = ReceiverStream::new(parts);
        let parts = parts.map(|part| Ok::<_, Infallible>(Bytes::from(part)));
        let body = Body::new(axum::body::Body::from_stream(parts));
        (sender, MessageStream::new(body, pool.clone()))
    }

    /// A message of `length` bytes with its prefix.
    fn message(length: u8) -> Vec<u8> {
        let mut message = vec![0, 0, 0, 0, length];
        message.resize(PREFIX_BYTES + usize::from(length), 7);
        message
    }

    async fn next(stream: &mut MessageStream) -> Option<Result<Frame<Bytes>, Status>> {
        std::future::poll_fn(|context| Pin::new(&mut *stream).poll_frame(context)).await
    }

    /// The bytes that can be read now.
    fn read(stream: &mut MessageStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(Some(Ok(frame))) = next(stream).now_or_never() {
            bytes.extend(frame.into_data().expect("a part"));
        }
        bytes
    }

    #[tokio::test]
    async fn a_message_counts_from_its_prefix_until_the_stream_is_read_again() {
        for part_bytes in [1, 3, 7, 100] {
            let pool = MemoryPool::new(1_000);
            let (sender, mut stream) = stream(&pool);
            let sent = [message(10), message(0), message(20)].concat();
            let mut received = Vec::new();
            for part in sent.chunks(part_bytes) {
                sender.try_send(part.to_vec()).expect("it is read");
                let frame = next(&mut stream).await.expect("it is open");
                received.extend(frame.expect("a part").into_data().expect("a part"));
                let message = match received.len() {
                    5..15 => 10,
                    25.. => 20,
                    _ => 0,
                };
                let reserved = pool.bytes_reserved();
                assert!(reserved >= MESSAGE_COPIES * message, "{reserved}");
                assert!(reserved <= MESSAGE_COPIES * 30, "{reserved}");
            }
            assert_eq!(received, sent);
            assert!(next(&mut stream).now_or_never().is_none());
            assert_eq!(pool.bytes_reserved(), 0);
        }
    }

    #[tokio::test]
    async fn memory_does_not_add_up_if_parts_end_within_messages() {
        let pool = MemoryPool::new(MESSAGE_COPIES * 60);
        let (sender, mut stream) = stream(&pool);
        let sent = message(20).repeat(100);
        for part in sent.chunks(40) {
            sender.try_send(part.to_vec()).expect("it is read");
        }
        assert_eq!(read(&mut stream), sent);
    }

    #[tokio::test]
    async fn a_message_waits_for_memory_before_it_is_read() {
        let pool = MemoryPool::new(MESSAGE_COPIES * 20);
        let (sender, mut stream) = stream(&pool);
        let other = pool.try_reserve(1).expect("it is free");
        let sent = [message(5), message(20)].concat();
        sender.try_send(sent.clone()).expect("it is read");
        let before = message(5).len() + PREFIX_BYTES;
        assert_eq!(read(&mut stream), sent[..before]);
        drop(other);
        assert_eq!(read(&mut stream), sent[before..]);
        assert_eq!(pool.bytes_reserved(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_arrive_in_time_ends_the_stream() {
        let (sender, mut stream) = stream(&MemoryPool::new(1_000));
        let idle = tokio::time::timeout(2 * RECEIVING_MAX, next(&mut stream));
        assert!(idle.await.is_err(), "a stream may be silent");
        let dripping = tokio::spawn(async move {
            for byte in message(200) {
                sender.try_send(vec![byte]).expect("it is open");
                tokio::time::sleep(RECEIVING_MAX / 100).await;
            }
        });
        let status = loop {
            match next(&mut stream).await.expect("it does not end") {
                Ok(_) => {}
                Err(status) => break status,
            }
        };
        assert_eq!(status.code(), Code::DeadlineExceeded);
        dripping.abort();
    }
}
