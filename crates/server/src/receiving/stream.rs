//! Streams of requests: each message counts against the node's memory as it arrives, until the service has handled it.
//!
//! A message that has arrived in part holds memory, and its caller may never send the rest. So one message at a time may be
//! received beyond the pool, and small ones in the memory of their streams: reports of tasks keep arriving, whatever other
//! messages hold.
//!
//! Messages are assembled here, because the buffer of the transport keeps the size of its largest message for as long as the
//! stream lives (ADR 0044).

use super::arrived::{ArrivedMessages, MessageMemory};
use super::assembly::Assembly;
use super::incomplete::{IncompleteMessage, IncompleteMessages};
use crate::errors::Refusal;
use crate::limits::{
    EXEMPT_RECEIVING_MAX, EXEMPT_STALL_MAX, FIRST_MESSAGE_WAIT_MIN, MESSAGE_COPIES,
    MESSAGE_MEMORY_WAIT_MAX, MESSAGES_WAITING_MAX, OPEN_STREAM_BYTES, RECEIVED_MESSAGE_BYTES_MAX,
    RECEIVING_MAX, SMALL_MESSAGE_BYTES_MAX,
};
use crate::memory::{MemoryPool, Reservation};
use crate::sending::Responses;
use bytes::Buf;
use futures::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// The memory for the messages of all streams at one port.
#[derive(Clone, Debug)]
pub(super) struct StreamMessages {
    pool: MemoryPool,
    /// The message that has the permit may be received beyond the pool.
    exempt: Arc<Semaphore>,
    /// The messages that may wait for memory. While one waits, the bytes that have arrived on its stream do not count.
    waiting: Arc<Semaphore>,
    /// The streams whose first message is awaited.
    awaiting_first: IncompleteMessages,
    /// Results of reports among them keep memory of the pool until they are read.
    responses: Responses,
}

impl StreamMessages {
    /// No messages yet, within `pool`.
    pub(super) fn new(pool: MemoryPool, responses: Responses) -> Self {
        Self {
            pool,
            exempt: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(MESSAGES_WAITING_MAX)),
            awaiting_first: IncompleteMessages::new(usize::MAX),
            responses,
        }
    }

    /// The body of a stream, whose service takes the messages from `arrived`; without it, they are in the body, and must be
    /// small. The body fails if `streams` has no memory for another stream.
    pub(super) fn receive(
        &self,
        body: Body,
        streams: &MemoryPool,
        arrived: Option<ArrivedMessages>,
    ) -> ReceivingStream {
        let open = streams.try_reserve(OPEN_STREAM_BYTES);
        if open.is_none() {
            self.awaiting_first.end_oldest(FIRST_MESSAGE_WAIT_MIN);
        }
        let length_max = match arrived {
            Some(_) => RECEIVED_MESSAGE_BYTES_MAX,
            None => SMALL_MESSAGE_BYTES_MAX,
        };
        ReceivingStream {
            body,
            data: Bytes::new(),
            assembly: Assembly::new(length_max),
            memory: self.pool.empty(),
            small: MemoryPool::new(SMALL_MESSAGE_BYTES_MAX * MESSAGE_COPIES),
            covered: 0,
            exempt: None,
            waiting: None,
            first: Some(self.awaiting_first.add(Instant::now() + RECEIVING_MAX)),
            began: Instant::now(),
            deadline: None,
            messages: self.clone(),
            open,
            arrived,
        }
    }

    /// Waits until a small message has memory, of the pool or of its stream; `None` after [`MESSAGE_MEMORY_WAIT_MAX`].
    async fn memory_of_small(self, small: MemoryPool, bytes: usize) -> Option<Granted> {
        let granting = async {
            tokio::select! {
                Some(memory) = self.pool.reserve(bytes) => Some(Granted::Memory(memory)),
                Some(memory) = small.reserve(bytes) => Some(Granted::Memory(memory)),
                else => None,
            }
        };
        self.in_time(granting).await
    }

    /// Waits until the next part of a large message has memory, or until the message may be received beyond the pool; `None`
    /// after [`MESSAGE_MEMORY_WAIT_MAX`], or if too many messages wait.
    async fn memory_of_large(self, bytes: usize) -> Option<Granted> {
        let _waiting = self.waiting.try_acquire().ok()?;
        let granting = async {
            tokio::select! {
                Some(memory) = self.pool.reserve(bytes) => Some(Granted::Memory(memory)),
                Ok(permit) = self.exempt.clone().acquire_owned() => Some(Granted::Exempt(permit)),
                else => None,
            }
        };
        self.in_time(granting).await
    }

    async fn in_time(&self, granting: impl Future<Output = Option<Granted>>) -> Option<Granted> {
        let granted = timeout(MESSAGE_MEMORY_WAIT_MAX, self.responses.freeing(granting)).await;
        granted.ok()?
    }
}

/// The end of a stream for lack of memory.
fn reconnect(text: &str) -> Status {
    let refusal = Refusal::overloaded(text).with_hint("reconnect after a delay");
    refusal.into()
}

/// What a message was granted after it has waited.
enum Granted {
    /// Memory for what was asked.
    Memory(Reservation),
    /// The permit to be received beyond the pool.
    Exempt(OwnedSemaphorePermit),
}

/// A body whose messages are assembled and counted as they arrive.
pub(super) struct ReceivingStream {
    body: Body,
    /// What has arrived and is not part of a message yet.
    data: Bytes,
    assembly: Assembly,
    /// The memory of the message.
    memory: Reservation,
    /// For small messages when the pool is used up.
    small: MemoryPool,
    /// How many bytes of the message have memory.
    covered: usize,
    /// If the message may be received beyond the pool: until when.
    exempt: Option<(OwnedSemaphorePermit, Instant)>,
    waiting: Option<BoxFuture<'static, Option<Granted>>>,
    /// Until the first message has arrived.
    first: Option<IncompleteMessage>,
    /// When the message began.
    began: Instant,
    /// When the message must have arrived, if a part of it is missing.
    deadline: Option<Pin<Box<Sleep>>>,
    messages: StreamMessages,
    /// The memory of the open stream; `None` if there was none.
    open: Option<Reservation>,
    arrived: Option<ArrivedMessages>,
}

impl ReceivingStream {
    /// Adds what has arrived to the message; true once it is complete.
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, Status>> {
        if !self.assembly.has_begun() {
            self.began = Instant::now();
        }
        if self.assembly.take_prefix(&mut self.data)? {
            ready!(self.poll_cover(context))?;
            self.assembly.take_content(&mut self.data);
        }
        Poll::Ready(Ok(self.assembly.is_complete()))
    }

    /// Waits until what has arrived of the message has memory.
    fn poll_cover(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let length = self.assembly.length_with(&self.data);
        if length <= self.covered {
            return Poll::Ready(Ok(()));
        }
        // A small message needs all of its memory from one pool.
        let is_small = self.assembly.length() <= SMALL_MESSAGE_BYTES_MAX;
        let until = if is_small {
            self.assembly.length()
        } else {
            length
        };
        let bytes = (until - self.covered) * MESSAGE_COPIES;
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            None => {
                if let Some(reservation) = self.messages.pool.try_reserve(bytes) {
                    self.memory.merge(reservation);
                    self.covered = until;
                    return Poll::Ready(Ok(()));
                }
                let messages = self.messages.clone();
                self.waiting.insert(if is_small {
                    Box::pin(messages.memory_of_small(self.small.clone(), bytes))
                } else {
                    Box::pin(messages.memory_of_large(bytes))
                })
            }
        };
        let granted = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        self.covered = until;
        match granted {
            Some(Granted::Memory(reservation)) if is_small => self.memory = reservation,
            Some(Granted::Memory(reservation)) => self.memory.merge(reservation),
            Some(Granted::Exempt(permit)) => {
                self.exempt = Some((permit, Instant::now() + EXEMPT_RECEIVING_MAX));
                self.covered = self.assembly.length();
                self.deadline = None;
            }
            None => {
                let text = "expected memory for the message, but other messages use all of it";
                return Poll::Ready(Err(reconnect(text)));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hands the complete message over to the service.
    fn hand_over(&mut self) -> Frame<Bytes> {
        let nothing = self.messages.pool.empty();
        let memory = MessageMemory::new(
            mem::replace(&mut self.memory, nothing),
            self.exempt.take().map(|(permit, _)| permit),
        );
        let prefix = self.assembly.prefix();
        let message = self.assembly.finish();
        self.covered = 0;
        self.first = None;
        self.deadline = None;
        match &self.arrived {
            Some(arrived) => {
                arrived.add((message, memory));
                Frame::data(Bytes::from_static(&[0; Assembly::PREFIX_BYTES]))
            }
            None => Frame::data([&prefix[..], &message].concat().into()),
        }
    }

    /// Waits until the stream must end because a part of a message is missing. Returns the status.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if let Some(first) = &mut self.first
            && let Poll::Ready(status) = first.poll_end(context)
        {
            return Poll::Ready(status);
        }
        if !self.assembly.has_begun() {
            return Poll::Pending;
        }
        let deadline = self.deadline.get_or_insert_with(|| {
            Box::pin(sleep_until(match self.exempt {
                Some((_, until)) => until.min(Instant::now() + EXEMPT_STALL_MAX),
                None => self.began + RECEIVING_MAX,
            }))
        });
        ready!(deadline.as_mut().poll(context));
        let message = "expected the message to arrive in time, but a part of it is missing";
        Poll::Ready(Status::deadline_exceeded(message))
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
            let text = "expected memory for another worker stream, but open ones use all of it";
            return Poll::Ready(Some(Err(reconnect(text))));
        }
        loop {
            while self.data.has_remaining() {
                if ready!(self.poll_message(context))? {
                    return Poll::Ready(Some(Ok(self.hand_over())));
                }
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    self.data = frame.into_data().unwrap_or_default();
                }
                Poll::Ready(None | Some(Ok(_))) if self.assembly.has_begun() => {
                    let text = "expected the rest of a message, but the stream has ended";
                    return Poll::Ready(Some(Err(Status::internal(text))));
                }
                Poll::Ready(ended) => return Poll::Ready(ended),
                Poll::Pending => {
                    return self.poll_end(context).map(|status| Some(Err(status)));
                }
            }
            if self.exempt.is_some() {
                self.deadline = None;
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && !self.assembly.has_begun() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, StreamExt, stream};
    use hyper::body::Body as _;
    use prost::Message;
    use std::convert::Infallible;
    use tonic::Code;

    type Receiving = Pin<Box<ReceivingStream>>;

    /// Streams whose messages have `bytes`, beside the copies.
    fn streams(bytes: usize) -> StreamMessages {
        let pool = MemoryPool::new(1 << 20);
        let responses = Responses::new(pool.clone(), pool);
        StreamMessages::new(MemoryPool::new(bytes * MESSAGE_COPIES), responses)
    }

    /// A stream of which these parts arrive, and nothing after them.
    fn receive(streams: &StreamMessages, parts: &[&[u8]]) -> (Receiving, ArrivedMessages) {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| Bytes::copy_from_slice(part))
            .collect();
        let parts = stream::iter(parts).map(Ok::<_, Infallible>);
        let body = axum::body::Body::from_stream(parts.chain(stream::pending()));
        let open = MemoryPool::new(OPEN_STREAM_BYTES);
        let arrived = ArrivedMessages::default();
        let receiving = streams.receive(Body::new(body), &open, Some(arrived.clone()));
        (Box::pin(receiving), arrived)
    }

    /// A message whose encoded form has `bytes`, with its prefix.
    fn message(bytes: usize) -> Vec<u8> {
        let text = match bytes {
            0 => String::new(),
            1..130 => "x".repeat(bytes - 2),
            130..16_387 => "x".repeat(bytes - 3),
            _ => "x".repeat(bytes - 4),
        };
        let content = text.encode_to_vec();
        assert_eq!(content.len(), bytes);
        let length = u32::try_from(bytes).expect("a length").to_be_bytes();
        [&[0][..], &length, &content].concat()
    }

    /// Waits until a message has arrived.
    async fn next(body: &mut Receiving) -> Result<(), Code> {
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await;
        let frame = frame
            .expect("it does not end")
            .map_err(|status| status.code())?;
        assert_eq!(*frame.into_data().expect("it is data"), [0; 5]);
        Ok(())
    }

    fn take(arrived: &ArrivedMessages) -> (usize, MessageMemory) {
        let (message, memory) = arrived.take::<String>().expect("it has arrived");
        (message.encoded_len(), memory)
    }

    #[tokio::test]
    async fn messages_arrive_whole_in_whatever_parts_they_come() {
        let lengths = [0, 3, 4, 5, 300, 0, 70_000];
        let sent: Vec<u8> = lengths.into_iter().flat_map(message).collect();
        for part in [1, 2, 3, 5, 7, 64, 16_384, sent.len()] {
            let streams = streams(100_000);
            let parts: Vec<&[u8]> = sent.chunks(part).collect();
            let (mut body, arrived) = receive(&streams, &parts);
            for length in lengths {
                assert_eq!(next(&mut body).await, Ok(()));
                let (found, memory) = take(&arrived);
                assert_eq!(found, length, "in parts of {part}");
                assert_eq!(memory.bytes(), length * MESSAGE_COPIES);
            }
            assert!(next(&mut body).now_or_never().is_none());
            assert_eq!(streams.pool.bytes_reserved(), 0);
        }
    }

    #[tokio::test]
    async fn a_message_counts_until_its_parts_are_handled() {
        let streams = streams(10_000);
        let (mut body, arrived) = receive(&streams, &[&message(4_000)]);
        assert_eq!(next(&mut body).await, Ok(()));
        let (_, memory) = take(&arrived);
        let reserved = || streams.pool.bytes_reserved();
        let parts: Vec<_> = memory.into_parts(4).collect();
        assert_eq!(reserved(), 4_000 * MESSAGE_COPIES);
        let kept: Vec<_> = parts.into_iter().map(|part| part.keep(10)).collect();
        assert_eq!(reserved(), 40);
        drop(kept);
        assert_eq!(reserved(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent_once_its_first_message_has_arrived() {
        let streams = streams(1_000);
        let (mut silent, _) = receive(&streams, &[]);
        let begun = Instant::now();
        assert_eq!(next(&mut silent).await, Err(Code::DeadlineExceeded));
        assert_eq!(begun.elapsed(), RECEIVING_MAX);
        let (mut greeted, _) = receive(&streams, &[&message(3)]);
        assert_eq!(next(&mut greeted).await, Ok(()));
        let waited = timeout(2 * RECEIVING_MAX, next(&mut greeted)).await;
        assert!(waited.is_err(), "{waited:?}");
        let (mut begun, _) = receive(&streams, &[&message(3), &message(10)[..8]]);
        assert_eq!(next(&mut begun).await, Ok(()));
        assert_eq!(next(&mut begun).await, Err(Code::DeadlineExceeded));
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_are_received_one_at_a_time_when_they_need_more_than_there_is() {
        let streams = streams(50_000);
        let sent = message(20_000);
        let parts: Vec<&[u8]> = sent.chunks(1_000).collect();
        // Eight of them use up the memory before any is complete.
        let mut receiving = Vec::new();
        for _ in 0..8 {
            let (mut body, arrived) = receive(&streams, &parts);
            receiving.push(async move {
                next(&mut body).await.map(|()| {
                    let (bytes, memory) = take(&arrived);
                    drop(memory);
                    bytes
                })
            });
        }
        // A caller that never sends the rest has the rest of the memory.
        let stalled = &message(40_000)[..35_000];
        let (mut stalled, _) = receive(&streams, &[stalled]);
        assert!(next(&mut stalled).now_or_never().is_none());
        let arrived = futures::future::join_all(receiving).await;
        assert_eq!(arrived, vec![Ok(20_000); 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_beyond_the_pool_ends_if_it_makes_no_progress() {
        let streams = streams(1_000);
        let half = &message(4_000)[..2_000];
        let (mut stalled, _) = receive(&streams, &[half]);
        let sent = message(5_000);
        let (mut honest, arrived) = receive(&streams, &[&sent]);
        let begun = Instant::now();
        let (first, second) = tokio::join!(
            async {
                let ended = next(&mut stalled).await;
                drop(stalled);
                ended
            },
            next(&mut honest)
        );
        assert_eq!((first, second), (Err(Code::DeadlineExceeded), Ok(())));
        assert_eq!(begun.elapsed(), EXEMPT_STALL_MAX);
        assert_eq!(take(&arrived).0, 5_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_beyond_the_pool_ends_although_bytes_arrive() {
        let streams = streams(1_000);
        let sent = message(4_000);
        let bytes = sent.chunks(1).map(Bytes::copy_from_slice);
        let every_half_second = stream::iter(bytes.collect::<Vec<_>>()).then(async |byte| {
            tokio::time::sleep(EXEMPT_STALL_MAX / 2).await;
            Ok::<_, Infallible>(byte)
        });
        let body = axum::body::Body::from_stream(every_half_second);
        let open = MemoryPool::new(OPEN_STREAM_BYTES);
        let arrived = Some(ArrivedMessages::default());
        let mut trickling = Box::pin(streams.receive(Body::new(body), &open, arrived));
        let _used = streams.pool.try_reserve(1_000 * MESSAGE_COPIES);
        let begun = Instant::now();
        assert_eq!(next(&mut trickling).await, Err(Code::DeadlineExceeded));
        assert!(begun.elapsed() < 2 * EXEMPT_RECEIVING_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_continues_once_others_release_memory() {
        let streams = streams(5_000);
        let all = streams.pool.try_reserve(5_000 * MESSAGE_COPIES);
        let _permit = streams.exempt.clone().try_acquire_owned();
        let (mut waiting, arrived) = receive(&streams, &[&message(4_000)]);
        assert!(next(&mut waiting).now_or_never().is_none());
        drop(all);
        assert_eq!(next(&mut waiting).await, Ok(()));
        assert_eq!(take(&arrived).0, 4_000);
    }

    #[tokio::test]
    async fn a_stream_that_ends_within_a_message_fails() {
        let streams = streams(1_000);
        let part = Bytes::copy_from_slice(&message(100)[..50]);
        let parts = stream::iter([Ok::<_, Infallible>(part)]);
        let body = Body::new(axum::body::Body::from_stream(parts));
        let arrived = Some(ArrivedMessages::default());
        let open = MemoryPool::new(OPEN_STREAM_BYTES);
        let mut cut = Box::pin(streams.receive(body, &open, arrived));
        assert_eq!(next(&mut cut).await, Err(Code::Internal));
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_message_waits_for_no_other_stream() {
        let streams = streams(1_000);
        let _used = streams.pool.try_reserve(1_000 * MESSAGE_COPIES);
        let (mut body, arrived) = receive(&streams, &[&message(2_000), &message(2_000)]);
        assert_eq!(next(&mut body).await, Ok(()));
        let (_, memory) = take(&arrived);
        assert!(
            next(&mut body).now_or_never().is_none(),
            "its own memory is used"
        );
        drop(memory);
        assert_eq!(next(&mut body).await, Ok(()));
        let (mut never_handled, _arrived) = receive(&streams, &[&message(2_000), &message(2_000)]);
        assert_eq!(next(&mut never_handled).await, Ok(()));
        assert_eq!(next(&mut never_handled).await, Err(Code::ResourceExhausted));
    }

    #[tokio::test]
    async fn a_large_message_too_many_ends_its_stream() {
        let streams = streams(1_000);
        let waiting = u32::try_from(MESSAGES_WAITING_MAX).expect("few");
        let _waiting = streams.waiting.try_acquire_many(waiting);
        let (mut one_too_many, _) = receive(&streams, &[&message(4_000)]);
        assert_eq!(next(&mut one_too_many).await, Err(Code::ResourceExhausted));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_or_compressed_ends_its_stream() {
        let streams = streams(1_000);
        let long = [&[0][..], &u32::MAX.to_be_bytes()].concat();
        let (mut body, _) = receive(&streams, &[&long]);
        assert_eq!(next(&mut body).await, Err(Code::OutOfRange));
        let (mut body, _) = receive(&streams, &[&[1, 0, 0, 0, 1, 0]]);
        assert_eq!(next(&mut body).await, Err(Code::Unimplemented));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_too_many_ends_and_the_oldest_one_without_a_message_too() {
        let streams = streams(1_000);
        let open = MemoryPool::new(OPEN_STREAM_BYTES);
        let silent = || {
            let body =
                axum::body::Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
            Box::pin(streams.receive(Body::new(body), &open, None))
        };
        let mut oldest = silent();
        assert!(next(&mut oldest).now_or_never().is_none());
        tokio::time::advance(FIRST_MESSAGE_WAIT_MIN).await;
        assert_eq!(next(&mut silent()).await, Err(Code::ResourceExhausted));
        assert_eq!(next(&mut oldest).await, Err(Code::ResourceExhausted));
        drop(oldest);
        assert_eq!(open.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn a_service_that_takes_no_messages_has_small_ones_in_its_body() {
        let streams = streams(10_000);
        let sent = message(100);
        let parts = stream::iter([Ok::<_, Infallible>(Bytes::from(sent.clone()))]);
        let body = Body::new(axum::body::Body::from_stream(parts));
        let mut body = streams.receive(body, &MemoryPool::new(OPEN_STREAM_BYTES), None);
        let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let frame = next.expect("it has one").expect("it is small");
        assert_eq!(frame.into_data().expect("it is data"), sent);
        assert_eq!(streams.pool.bytes_reserved(), 0);
    }
}
