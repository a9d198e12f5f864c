//! Streams of requests: each message counts against the node's memory as it arrives, until the service has handled it.
//!
//! A message that has arrived in part holds memory, and its caller may never send the rest. So when no memory is left, the
//! streams whose messages have been incomplete for longest end, and callers that do not read their responses are
//! disconnected. The others wait: flow control slows down their callers.

use super::overloaded;
use super::partial::{Part, Partials};
use crate::errors::Refusal;
use crate::limits::{
    INCOMPLETE_MIN, MESSAGE_COPIES, MESSAGE_MEMORY_WAIT_MAX, MESSAGES_WAITING_MAX, RECEIVING_MAX,
    STREAM_BYTES, STREAM_MESSAGE_BYTES_MAX, UNREAD_CHECK_INTERVAL,
};
use crate::memory::{MemoryPool, Reservation};
use crate::sending::Responses;
use futures::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// The memory for the messages of all streams at one port.
#[derive(Clone, Debug)]
pub(super) struct StreamMessages {
    pool: MemoryPool,
    partials: Partials,
    /// The messages that may wait for memory. What has arrived of their streams meanwhile is not counted.
    waiting: Arc<Semaphore>,
    /// The callers that may keep memory because they do not read.
    responses: Responses,
}

/// The memory of the messages that have arrived on one stream, in their order.
#[derive(Clone, Debug)]
pub(crate) struct ArrivedMemory {
    pool: MemoryPool,
    messages: Arc<Mutex<VecDeque<Reservation>>>,
}

impl ArrivedMemory {
    /// That of a stream, which the receiver has added to its request.
    ///
    /// # Errors
    /// An internal error if it has not.
    pub(crate) fn of<T>(request: &tonic::Request<T>) -> Result<Self, Refusal> {
        let memory = request.extensions().get::<Self>().cloned();
        memory.ok_or_else(|| {
            Refusal::internal("expected memory for the stream, but none was assigned".to_owned())
        })
    }

    /// The memory of the next message. The service must claim it as soon as it has the message.
    pub(crate) fn claim(&self) -> Reservation {
        let claimed = self.lock().pop_front();
        claimed.unwrap_or_else(|| self.pool.nothing())
    }

    fn add(&self, message: Reservation) {
        self.lock().push_back(message);
    }

    /// Releases the memory of messages that the service has not claimed.
    fn release(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Reservation>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamMessages {
    /// No messages yet, within `pool`.
    pub(super) fn new(pool: MemoryPool, responses: Responses) -> Self {
        Self {
            pool,
            partials: Partials::new(usize::MAX),
            waiting: Arc::new(Semaphore::new(MESSAGES_WAITING_MAX)),
            responses,
        }
    }

    /// The body of a stream, and the memory of the messages that have arrived. It fails if `streams` has no memory for
    /// another stream.
    pub(super) fn receive(
        &self,
        body: Body,
        streams: &MemoryPool,
    ) -> (ReceivingStream, ArrivedMemory) {
        let open = streams.try_reserve(STREAM_BYTES);
        if open.is_none() {
            self.partials.end_oldest(INCOMPLETE_MIN);
        }
        let arrived = ArrivedMemory {
            pool: self.pool.clone(),
            messages: Arc::default(),
        };
        let receiving = ReceivingStream {
            body,
            messages: self.clone(),
            open,
            framing: Framing::default(),
            memory: self.pool.nothing(),
            // The first message is awaited.
            part: Some(self.partials.add(Instant::now() + RECEIVING_MAX)),
            waiting: None,
            arrived: arrived.clone(),
        };
        (receiving, arrived)
    }

    /// Waits for memory; `None` if none becomes free in time, or if too many messages wait.
    async fn reserve(self, bytes: usize) -> Option<Reservation> {
        let _waiting = self.waiting.try_acquire().ok()?;
        let freeing = async {
            let mut ticks = interval(UNREAD_CHECK_INTERVAL);
            loop {
                ticks.tick().await;
                self.partials.end_oldest(INCOMPLETE_MIN);
                self.responses.close_unread();
            }
        };
        let reserving = async {
            tokio::select! {
                reservation = self.pool.reserve(bytes) => reservation,
                never = freeing => never,
            }
        };
        timeout(MESSAGE_MEMORY_WAIT_MAX, reserving).await.ok()?
    }
}

/// Where the messages of a stream begin and end.
#[derive(Debug, Default)]
struct Framing {
    prefix: [u8; Self::PREFIX_BYTES],
    prefix_bytes: usize,
    /// What is missing of the current message, once its prefix has arrived.
    bytes_left: usize,
}

/// A message is longer than a stream's messages may be.
#[derive(Debug, PartialEq, Eq)]
struct TooLong;

impl Framing {
    /// Before each message: a byte that says whether it is compressed, and its length in four bytes.
    const PREFIX_BYTES: usize = 5;

    /// Whether a message has begun and has not ended.
    fn is_in_message(&self) -> bool {
        self.prefix_bytes > 0
    }

    /// How many bytes at the beginning of `data` belong to the current message, and whether it ends with them.
    fn advance(&mut self, data: &[u8]) -> Result<(usize, bool), TooLong> {
        let prefix = data.len().min(Self::PREFIX_BYTES - self.prefix_bytes);
        let (at, end) = (self.prefix_bytes, self.prefix_bytes + prefix);
        self.prefix[at..end].copy_from_slice(&data[..prefix]);
        self.prefix_bytes = end;
        if end < Self::PREFIX_BYTES {
            return Ok((prefix, false));
        }
        if prefix > 0 {
            let [_, length @ ..] = self.prefix;
            self.bytes_left = u32::from_be_bytes(length) as usize;
            if self.bytes_left > STREAM_MESSAGE_BYTES_MAX {
                return Err(TooLong);
            }
        }
        let content = self.bytes_left.min(data.len() - prefix);
        self.bytes_left -= content;
        let is_complete = self.bytes_left == 0;
        if is_complete {
            self.prefix_bytes = 0;
        }
        Ok((prefix + content, is_complete))
    }
}

/// A body whose messages are counted as they arrive.
pub(super) struct ReceivingStream {
    body: Body,
    messages: StreamMessages,
    /// The memory of the open stream; `None` if there was none.
    open: Option<Reservation>,
    framing: Framing,
    /// What has arrived of the current message.
    memory: Reservation,
    /// The current message, while a part of it is missing.
    part: Option<Part>,
    /// What has arrived and waits for memory.
    waiting: Option<(Frame<Bytes>, BoxFuture<'static, Option<Reservation>>)>,
    arrived: ArrivedMemory,
}

impl ReceivingStream {
    /// Reserves memory for a part that has arrived.
    fn poll_reserve(
        &mut self,
        frame: Frame<Bytes>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Frame<Bytes>, Status>> {
        let bytes = frame.data_ref().map_or(0, Bytes::len) * MESSAGE_COPIES;
        if let Some(reservation) = self.messages.pool.try_reserve(bytes) {
            return Poll::Ready(self.count(frame, reservation));
        }
        // While it waits, the node is the one that delays it.
        self.part = None;
        let reserving = Box::pin(self.messages.clone().reserve(bytes));
        self.waiting = Some((frame, reserving));
        self.poll_waiting(context)
    }

    /// Waits until the part that has arrived has memory.
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<Result<Frame<Bytes>, Status>> {
        let Some((_, reserving)) = &mut self.waiting else {
            return Poll::Pending;
        };
        let reservation = ready!(reserving.as_mut().poll(context));
        let frame = self.waiting.take().map(|(frame, _)| frame);
        Poll::Ready(match (frame, reservation) {
            (Some(frame), Some(reservation)) => self.count(frame, reservation),
            _ => Err(overloaded().into()),
        })
    }

    /// Assigns the memory of a part that has arrived to the messages in it.
    fn count(
        &mut self,
        frame: Frame<Bytes>,
        mut reservation: Reservation,
    ) -> Result<Frame<Bytes>, Status> {
        let mut data = frame.data_ref().map_or(&[][..], |data| data);
        while !data.is_empty() {
            let (bytes, is_complete) = self.framing.advance(data).map_err(|TooLong| {
                Status::out_of_range(format!(
                    "expected a message of at most {STREAM_MESSAGE_BYTES_MAX} bytes, but it is longer"
                ))
            })?;
            data = &data[bytes..];
            self.memory.merge(reservation.split(bytes * MESSAGE_COPIES));
            if is_complete {
                self.part = None;
                let nothing = self.messages.pool.nothing();
                self.arrived.add(mem::replace(&mut self.memory, nothing));
            }
        }
        if self.framing.is_in_message() && self.part.is_none() {
            let until = Instant::now() + RECEIVING_MAX;
            self.part = Some(self.messages.partials.add(until));
        }
        Ok(frame)
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        match &mut self.part {
            Some(part) => part.poll_end(context),
            None => Poll::Pending,
        }
    }
}

impl hyper::body::Body for ReceivingStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.open.is_none() {
            return Poll::Ready(Some(Err(overloaded().into())));
        }
        // The transport asks for more only when the service has all complete messages.
        self.arrived.release();
        if let Poll::Ready(status) = self.poll_part(context) {
            return Poll::Ready(Some(Err(status)));
        }
        if self.waiting.is_some() {
            return self.poll_waiting(context).map(Some);
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => self.poll_reserve(frame, context).map(Some),
            ended => Poll::Ready(ended),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, StreamExt, stream};
    use hyper::body::Body as _;
    use std::convert::Infallible;
    use std::time::Duration;
    use tonic::Code;

    /// Streams whose messages have `bytes`, beside the copies.
    fn streams(bytes: usize) -> StreamMessages {
        let pool = MemoryPool::new(1 << 20);
        let responses = Responses::new(pool.clone(), pool);
        StreamMessages::new(MemoryPool::new(bytes * MESSAGE_COPIES), responses)
    }

    /// A stream of which these parts arrive, and nothing after them.
    fn receive(
        streams: &StreamMessages,
        parts: &[&[u8]],
    ) -> (Pin<Box<ReceivingStream>>, ArrivedMemory) {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| Bytes::copy_from_slice(part))
            .collect();
        let parts = stream::iter(parts).map(Ok::<_, Infallible>);
        let body = axum::body::Body::from_stream(parts.chain(stream::pending()));
        let open = MemoryPool::new(STREAM_BYTES);
        let (receiving, arrived) = streams.receive(Body::new(body), &open);
        (Box::pin(receiving), arrived)
    }

    /// A message of `bytes`, with its prefix.
    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).expect("a length").to_be_bytes();
        let mut message = [&[0][..], &length].concat();
        message.resize(Framing::PREFIX_BYTES + bytes, b'x');
        message
    }

    /// The next part of a stream: how many bytes it has.
    async fn next(body: &mut Pin<Box<ReceivingStream>>) -> Result<usize, Code> {
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await;
        let frame = frame
            .expect("it does not end")
            .map_err(|status| status.code())?;
        Ok(frame.into_data().expect("it is data").len())
    }

    #[test]
    fn messages_end_where_they_do_however_they_arrive() {
        let lengths = [0, 1, 4, 5, 300, 0, 70_000];
        let sent: Vec<u8> = lengths.into_iter().flat_map(message).collect();
        for part in [1, 2, 3, 5, 7, 64, 16_384, sent.len()] {
            let (mut framing, mut found, mut bytes) = (Framing::default(), Vec::new(), 0);
            for mut data in sent.chunks(part) {
                while !data.is_empty() {
                    let (taken, is_complete) = framing.advance(data).expect("it is short");
                    data = &data[taken..];
                    bytes += taken;
                    if is_complete {
                        found.push(mem::take(&mut bytes) - Framing::PREFIX_BYTES);
                    }
                }
            }
            assert_eq!(found, lengths, "in parts of {part}");
            assert!(!framing.is_in_message());
        }
    }

    #[tokio::test]
    async fn a_message_counts_until_the_service_has_handled_it() {
        let streams = streams(1_000);
        let (first, second) = (message(95), message(195));
        let sent = [first, second].concat();
        let (mut body, arrived) = receive(&streams, &[&sent[..150], &sent[150..]]);
        let reserved = || streams.pool.bytes_reserved() / MESSAGE_COPIES;
        assert_eq!(next(&mut body).await, Ok(150));
        assert_eq!(reserved(), 150);
        let claimed = arrived.claim();
        assert_eq!(claimed.bytes(), 100 * MESSAGE_COPIES);
        assert_eq!(next(&mut body).await, Ok(150));
        drop(claimed);
        assert_eq!(reserved(), 200);
        assert!(next(&mut body).now_or_never().is_none());
        assert_eq!(reserved(), 0, "the service has not claimed it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent_once_its_first_message_has_arrived() {
        let streams = streams(1_000);
        let (mut silent, _) = receive(&streams, &[]);
        let begun = Instant::now();
        assert_eq!(next(&mut silent).await, Err(Code::DeadlineExceeded));
        assert_eq!(begun.elapsed(), RECEIVING_MAX);
        let (mut greeted, _) = receive(&streams, &[&message(1)]);
        assert_eq!(next(&mut greeted).await, Ok(6));
        let waited = timeout(2 * RECEIVING_MAX, next(&mut greeted)).await;
        assert!(waited.is_err(), "{waited:?}");
        let half = &message(10)[..8];
        let (mut begun, _) = receive(&streams, &[&message(1), half]);
        assert_eq!(next(&mut begun).await, Ok(6));
        assert_eq!(next(&mut begun).await, Ok(8));
        assert_eq!(next(&mut begun).await, Err(Code::DeadlineExceeded));
    }

    #[tokio::test(start_paused = true)]
    async fn the_message_that_is_incomplete_for_longest_ends_when_another_one_needs_memory() {
        let streams = streams(100);
        let half = &message(100)[..60];
        let (mut oldest, _) = receive(&streams, &[half]);
        assert_eq!(next(&mut oldest).await, Ok(60));
        assert!(next(&mut oldest).now_or_never().is_none());
        let (mut other, _memory) = receive(&streams, &[&message(50)]);
        let waiting = async {
            let begun = Instant::now();
            let arrived = next(&mut other).await;
            (arrived, begun.elapsed())
        };
        let oldest_ends = async {
            // The transport drops the body of a stream that has ended.
            let mut oldest = oldest;
            next(&mut oldest).await
        };
        let ((arrived, waited), code) = tokio::join!(waiting, oldest_ends);
        assert_eq!((arrived, code), (Ok(55), Err(Code::ResourceExhausted)));
        assert_eq!(waited, INCOMPLETE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_finds_no_memory_ends_its_stream() {
        let streams = streams(100);
        let _used = streams.pool.try_reserve(100 * MESSAGE_COPIES);
        let (mut late, _memory) = receive(&streams, &[&message(50)]);
        let begun = Instant::now();
        assert_eq!(next(&mut late).await, Err(Code::ResourceExhausted));
        assert_eq!(begun.elapsed(), MESSAGE_MEMORY_WAIT_MAX);
        drop(late);
        let waiting = streams.waiting.try_acquire_many(64);
        assert!(waiting.is_ok(), "{waiting:?}");
        let (mut one_too_many, _memory) = receive(&streams, &[&message(50)]);
        let status = next(&mut one_too_many).now_or_never();
        assert_eq!(status, Some(Err(Code::ResourceExhausted)));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_ends_its_stream() {
        let streams = streams(1_000);
        let long = &message(STREAM_MESSAGE_BYTES_MAX + 1)[..100];
        let (mut body, _) = receive(&streams, &[long]);
        assert_eq!(next(&mut body).await, Err(Code::OutOfRange));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_too_many_ends_and_the_oldest_one_without_a_message_too() {
        let streams = streams(1_000);
        let open = MemoryPool::new(STREAM_BYTES);
        let empty = || {
            Body::new(axum::body::Body::from_stream(stream::pending::<
                Result<Bytes, Infallible>,
            >()))
        };
        let (oldest, _) = streams.receive(empty(), &open);
        let mut oldest = Box::pin(oldest);
        assert!(next(&mut oldest).now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        let (refused, _) = streams.receive(empty(), &open);
        let mut refused = Box::pin(refused);
        assert_eq!(next(&mut refused).await, Err(Code::ResourceExhausted));
        assert_eq!(next(&mut oldest).await, Err(Code::ResourceExhausted));
        drop(oldest);
        assert_eq!(open.bytes_reserved(), 0);
    }
}
