//! How responses are sent: how much memory they may take until their callers have read them.
//!
//! A response counts against the node's memory until it is sent, and so does each message of a stream. A caller that does
//! not read would keep that memory. So when none is left, the connection of the caller that has read nothing for longest is
//! closed, if for at least [`UNREAD_MAX`].

use crate::errors::Refusal;
use crate::limits::{
    CHUNK_BYTES_MAX, REQUEST_MEMORY_DIVISOR, RESPONSE_BYTES, RESPONSE_COPIES,
    UNREAD_CHECK_INTERVAL, UNREAD_MAX, VIEW_BYTES_MAX,
};
use crate::memory::{MemoryPool, Reservation};
use crate::receiving::RequestMemory;
use bytes::{BufMut, BytesMut};
use flotilla_leader::channel::Receiver;
use flotilla_replica::Caller;
use futures::Stream;
use hyper::body::{Frame, SizeHint};
use prost::Message;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tonic::Request;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::{Extensions, Response};

/// The memory of the responses of one port.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    pool: MemoryPool,
    /// What watches have read and not sent yet. It is never waited for while memory of the other pool is awaited.
    views: MemoryPool,
    unread: Arc<Mutex<Unread>>,
}

/// The responses that are not sent yet, oldest first.
#[derive(Debug, Default)]
struct Unread {
    number_next: u64,
    by_number: BTreeMap<u64, (Instant, Reader)>,
}

/// The caller that reads a response.
#[derive(Clone, Debug)]
struct Reader {
    caller: Caller,
    last_read: Arc<Mutex<Instant>>,
}

/// Memory of a response, or of a message of a stream, until it is sent.
#[derive(Debug)]
pub(crate) struct Unsent {
    reservation: Reservation,
    place: Place,
}

/// A place among the responses that are not sent yet, until it is dropped.
#[derive(Debug)]
struct Place {
    unread: Arc<Mutex<Unread>>,
    number: u64,
    reader: Reader,
}

/// The memory for the response to one caller.
#[derive(Clone, Debug)]
pub(crate) struct ResponseMemory {
    responses: Responses,
    reader: Reader,
    request: RequestMemory,
    /// Messages that are not in the body yet.
    encoded: Encoded,
}

/// The messages that the next frame of a body stands for.
#[derive(Clone, Debug, Default)]
struct Encoded {
    messages: Arc<Mutex<Vec<EncodedMessage>>>,
}

#[derive(Debug)]
struct EncodedMessage {
    /// Its bytes, if the frame has only an empty message in its place.
    content: Option<Bytes>,
    memory: Vec<Unsent>,
}

impl Responses {
    /// Responses, and what watches have read for them, within these pools.
    pub(crate) fn new(pool: MemoryPool, views: MemoryPool) -> Self {
        Self {
            pool,
            views,
            unread: Arc::default(),
        }
    }

    /// The memory of the response to a request of `caller`, of which nothing is reserved yet.
    pub(crate) fn memory_for(&self, caller: Caller, request: RequestMemory) -> ResponseMemory {
        ResponseMemory {
            responses: self.clone(),
            reader: Reader::new(caller),
            request,
            encoded: Encoded::default(),
        }
    }

    /// Reserves memory for what is sent to a caller; `None` if it is not free now.
    fn try_reserve(&self, bytes: usize, reader: &Reader) -> Option<Unsent> {
        let reservation = self.pool.try_reserve(bytes.min(self.pool.bytes_max()));
        if reservation.is_none() {
            self.close_unread();
        }
        Some(self.unsent(reservation?, reader))
    }

    /// Waits for memory for what is sent to a caller. Cancel-safe.
    async fn reserve(&self, bytes: usize, reader: &Reader) -> Unsent {
        let reservation = self.reserve_from(&self.pool, bytes).await;
        self.unsent(reservation, reader)
    }

    /// Waits for memory for what a watch reads.
    async fn reserve_view(&self) -> Reservation {
        self.reserve_from(&self.views, VIEW_BYTES_MAX).await
    }

    /// Waits for memory of a pool, and closes connections of callers that keep it from others.
    async fn reserve_from(&self, pool: &MemoryPool, bytes: usize) -> Reservation {
        let bytes = bytes.min(pool.bytes_max());
        if let Some(reservation) = pool.try_reserve(bytes) {
            return reservation;
        }
        let reservation = self.freeing(pool.reserve(bytes)).await;
        reservation.expect("the bytes are at most those of the pool")
    }

    /// Waits, and meanwhile closes connections of callers that keep memory from others.
    pub(crate) async fn freeing<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        let mut ticks = interval_at(Instant::now(), UNREAD_CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                waited = &mut waiting => return waited,
                _ = ticks.tick() => self.close_unread(),
            }
        }
    }

    fn unsent(&self, reservation: Reservation, reader: &Reader) -> Unsent {
        Unsent {
            reservation,
            place: Place::last(&self.unread, reader),
        }
    }

    /// Closes the connection of a caller that has read nothing for long, although a response waits.
    pub(crate) fn close_unread(&self) {
        let mut unread = lock(&self.unread);
        let waiting = unread.by_number.iter();
        let mut waiting = waiting.take_while(|(_, (since, _))| since.elapsed() >= UNREAD_MAX);
        let silent = waiting.find(|(_, (_, reader))| reader.since_last_read() >= UNREAD_MAX);
        let Some(number) = silent.map(|(number, _)| *number) else {
            return;
        };
        if let Some((since, reader)) = unread.by_number.remove(&number) {
            tracing::warn!(
                seconds = since.elapsed().as_secs(),
                "closing a connection: its caller does not read its responses, and others need the memory"
            );
            reader.caller.disconnect();
        }
    }
}

fn lock(unread: &Mutex<Unread>) -> MutexGuard<'_, Unread> {
    unread.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    fn new(caller: Caller) -> Self {
        Self {
            caller,
            last_read: Arc::new(Mutex::new(Instant::now())),
        }
    }

    fn record_read(&self) {
        *self.last_read() = Instant::now();
    }

    /// How long ago it last read.
    fn since_last_read(&self) -> Duration {
        self.last_read().elapsed()
    }

    fn last_read(&self) -> MutexGuard<'_, Instant> {
        self.last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn last(unread: &Arc<Mutex<Unread>>, reader: &Reader) -> Self {
        let mut places = lock(unread);
        let number = places.number_next;
        places.number_next += 1;
        let entry = (Instant::now(), reader.clone());
        places.by_number.insert(number, entry);
        Self {
            unread: unread.clone(),
            number,
            reader: reader.clone(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.unread).by_number.remove(&self.number);
    }
}

impl Unsent {
    /// Splits off up to `bytes` of it, as the memory of a message that is to be sent now.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        Self {
            reservation: self.reservation.split(bytes),
            place: Place::last(&self.place.unread, &self.place.reader),
        }
    }
}

impl ResponseMemory {
    /// The memory of the response to a request, which the middleware has added to it.
    ///
    /// # Errors
    /// An internal error if it has not.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Refusal> {
        Self::in_extensions(request.extensions())
    }

    /// As [`ResponseMemory::of`], from the extensions of the request.
    ///
    /// # Errors
    /// As [`ResponseMemory::of`].
    pub(crate) fn in_extensions(extensions: &Extensions) -> Result<Self, Refusal> {
        let memory = extensions.get::<Self>().cloned();
        memory.ok_or_else(|| {
            Refusal::internal("expected memory for the response, but none was assigned".to_owned())
        })
    }

    /// Waits for memory for a message of a stream. Cancel-safe.
    pub(crate) async fn reserve_message(&self, bytes: usize) -> Unsent {
        self.responses.reserve(bytes, &self.reader).await
    }

    /// What is sent to the caller, in memory that is reserved already.
    pub(crate) fn unsent(&self, reservation: Reservation) -> Unsent {
        self.responses.unsent(reservation, &self.reader)
    }

    /// Waits for memory for what a watch reads.
    pub(crate) async fn reserve_view(&self) -> Reservation {
        self.responses.reserve_view().await
    }

    /// A unary response, whose memory counts until it is sent. If the request holds at least a quarter
    /// of the memory that the response needs, the response uses that memory and is never refused: so the results of large
    /// commands are not refused.
    ///
    /// # Errors
    /// That of an overloaded node.
    pub(crate) fn respond<T: Message>(&self, message: T) -> Result<tonic::Response<T>, Refusal> {
        let bytes = message.encoded_len();
        let bytes = bytes.saturating_mul(RESPONSE_COPIES) + RESPONSE_BYTES;
        let of_request = self.request.take(bytes);
        let unsent = if of_request.bytes() >= bytes / REQUEST_MEMORY_DIVISOR {
            Some(self.unsent(of_request))
        } else {
            self.responses.try_reserve(bytes, &self.reader)
        };
        let unsent = unsent.ok_or_else(response_memory_full)?;
        self.encoded.add(EncodedMessage {
            content: None,
            memory: vec![unsent],
        });
        Ok(tonic::Response::new(message))
    }

    /// Counts `bytes` more for a unary response, until it is sent.
    ///
    /// # Errors
    /// That of an overloaded node.
    pub(crate) fn reserve_more(&self, bytes: usize) -> Result<(), Refusal> {
        let unsent = self.responses.try_reserve(bytes, &self.reader);
        let unsent = unsent.ok_or_else(response_memory_full)?;
        self.encoded.add(EncodedMessage {
            content: None,
            memory: vec![unsent],
        });
        Ok(())
    }

    /// A stream of messages, which keep their memory until they are sent.
    pub(crate) fn stream<T>(&self, messages: Receiver<Counted<T>>) -> CountedStream<T> {
        CountedStream {
            messages,
            encoded: self.encoded.clone(),
        }
    }

    /// Makes the body hold the memory of its messages until they are sent. Releases the memory of the request.
    pub(crate) fn keep_until_sent(self, response: Response<Body>) -> Response<Body> {
        self.request.release();
        response.map(|body| {
            Body::new(Sending {
                body,
                encoded: self.encoded,
                next: VecDeque::new(),
            })
        })
    }
}

fn response_memory_full() -> Refusal {
    Refusal::overloaded(
        "expected enough memory for the response, but unsent responses use all of it",
    )
}

impl Encoded {
    fn add(&self, message: EncodedMessage) {
        self.lock().push(message);
    }

    /// The size of the messages of a stream.
    fn bytes(&self) -> usize {
        let messages = self.lock();
        let contents = messages
            .iter()
            .filter_map(|message| message.content.as_ref());
        contents.map(Bytes::len).sum()
    }

    fn take(&self) -> Vec<EncodedMessage> {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EncodedMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body whose parts keep the memory of their messages.
struct Sending {
    body: Body,
    encoded: Encoded,
    /// What is to be sent before anything else, and its memory.
    next: VecDeque<(Bytes, Arc<Vec<Unsent>>)>,
}

/// A part of a body, and the memory of its messages. The transport may keep it after the body has ended.
struct Chunk {
    bytes: Bytes,
    memory: Arc<Vec<Unsent>>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        for unsent in self.memory.iter() {
            unsent.place.reader.record_read();
        }
    }
}

impl Sending {
    /// Adds what a frame stands for.
    fn add(&mut self, frame: Bytes) {
        let (streamed, unary): (Vec<_>, Vec<_>) = self
            .encoded
            .take()
            .into_iter()
            .partition(|message| message.content.is_some());
        if streamed.is_empty() {
            let memory = unary.into_iter().flat_map(|message| message.memory);
            self.next.push_back((frame, Arc::new(memory.collect())));
        }
        for EncodedMessage { content, memory } in streamed {
            let content = content.unwrap_or_default();
            self.next.push_back((content, Arc::new(memory)));
        }
    }

    /// The next part. It is short, so that a caller that reads slowly is seen to read.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let (bytes, memory) = self.next.front_mut()?;
        let part = Chunk {
            bytes: bytes.split_to(bytes.len().min(CHUNK_BYTES_MAX)),
            memory: memory.clone(),
        };
        if bytes.is_empty() {
            self.next.pop_front();
        }
        if part.memory.is_empty() {
            return Some(part.bytes.clone());
        }
        Some(Bytes::from_owner(part))
    }
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        loop {
            if let Some(part) = self.next_chunk() {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.add(data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.next.is_empty() {
            true => self.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}

/// A message of a stream, and its memory.
pub(crate) struct Counted<T> {
    pub(crate) message: T,
    /// Empty if the message is too small to count.
    pub(crate) memory: Vec<Unsent>,
}

impl<T> Counted<T> {
    /// A message whose memory is reserved.
    pub(crate) fn new(message: T, memory: Unsent) -> Self {
        Self {
            message,
            memory: vec![memory],
        }
    }

    /// A message that is too small to count.
    pub(crate) fn small(message: T) -> Self {
        Self {
            message,
            memory: Vec::new(),
        }
    }

    /// Another form of the message.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Counted<U> {
        Counted {
            message: change(self.message),
            memory: self.memory,
        }
    }
}

/// The messages of a stream, which keep their memory until they are sent.
///
/// They are encoded here, because the buffer of the transport keeps the size of its largest message for as long as the
/// stream lives (ADR 0044). The transport gets an empty message for each.
pub(crate) struct CountedStream<T> {
    messages: Receiver<Counted<T>>,
    encoded: Encoded,
}

impl<M: Message + Default> Stream for CountedStream<Result<M, tonic::Status>> {
    type Item = Result<M, tonic::Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.encoded.bytes() >= CHUNK_BYTES_MAX {
            // When this is pending, tonic sends what it has encoded and polls again.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = ready!(Pin::new(&mut self.messages).poll_next(context));
        Poll::Ready(next.map(|Counted { message, memory }| {
            let content = Some(framed(&message?));
            self.encoded.add(EncodedMessage { content, memory });
            Ok(M::default())
        }))
    }
}

/// A message as it is sent: after a byte that says that it is not compressed, and its length.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(5 + length);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).expect("a message is far below 4 GiB"));
    message.encode(&mut framed).expect("it has the capacity");
    framed.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REQUEST_BYTES;
    use flotilla_leader::channel::{Bounds, channel};
    use futures::{FutureExt, StreamExt};
    use hyper::body::Body as _;
    use std::convert::Infallible;
    use tokio::time::advance;
    use tokio_util::sync::CancellationToken;

    fn responses(bytes: usize) -> Responses {
        Responses::new(MemoryPool::new(bytes), MemoryPool::new(VIEW_BYTES_MAX))
    }

    fn memory_of(responses: &Responses) -> ResponseMemory {
        let request = RequestMemory::reserve(&MemoryPool::new(REQUEST_BYTES));
        responses.memory_for(Caller::default(), request.expect("it is free"))
    }

    fn caller() -> (Caller, CancellationToken) {
        let closing = CancellationToken::new();
        (Caller::default().with_closing(closing.clone()), closing)
    }

    fn reader() -> (Reader, CancellationToken) {
        let (caller, closing) = caller();
        (Reader::new(caller), closing)
    }

    #[tokio::test(start_paused = true)]
    async fn the_caller_that_has_read_nothing_for_longest_is_disconnected_for_another_one() {
        let responses = responses(100);
        let ((silent, silent_closed), (slow, slow_closed)) = (reader(), reader());
        let first = responses.reserve(60, &silent).await;
        advance(UNREAD_MAX / 2).await;
        let second = responses.reserve(40, &slow).await;
        assert!(responses.try_reserve(1, &slow).is_none());
        assert!(!silent_closed.is_cancelled(), "it may still read");
        let mut waiting = Box::pin(responses.reserve(50, &slow));
        assert!(waiting.as_mut().now_or_never().is_none());
        tokio::select! {
            _ = &mut waiting => panic!("there is no memory"),
            () = silent_closed.cancelled() => {}
        }
        assert!(!slow_closed.is_cancelled());
        // Its connection drops what was to be sent.
        drop(first);
        let third = waiting.await;
        assert_eq!(responses.pool.bytes_reserved(), 90);
        drop((second, third));
        assert_eq!(responses.pool.bytes_reserved(), 0);
        assert!(lock(&responses.unread).by_number.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn views_wait_for_those_that_callers_have_not_read() {
        let responses = responses(100);
        let (silent, closed) = reader();
        let (view, unsent) = (
            responses.reserve_view().await,
            responses.reserve(1, &silent).await,
        );
        let mut waiting = Box::pin(responses.reserve_view());
        assert!(waiting.as_mut().now_or_never().is_none());
        tokio::select! {
            _ = &mut waiting => panic!("there is no memory"),
            () = closed.cancelled() => {}
        }
        drop((view, unsent));
        drop(waiting.await);
    }

    /// The next part of a body.
    async fn next(body: &mut Body) -> Option<Bytes> {
        let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        next.map(|next| {
            next.expect("it does not fail")
                .into_data()
                .expect("it is data")
        })
    }

    #[tokio::test]
    async fn a_response_counts_until_it_is_sent() {
        let message = |bytes: usize| "x".repeat(bytes);
        // (bytes of the message, whether its request has enough memory)
        for (bytes, is_of_request) in [(100, true), (15_000, true), (100_000, false)] {
            let responses = responses(1 << 20);
            let requests = MemoryPool::new(REQUEST_BYTES);
            let request = RequestMemory::reserve(&requests).expect("it is free");
            let memory = responses.memory_for(Caller::default(), request);
            memory.respond(message(bytes)).expect("there is memory");
            let body = Body::new(axum::body::Body::from(message(bytes)));
            let mut body = memory.keep_until_sent(Response::new(body)).into_body();
            let first = next(&mut body).await.expect("it has parts");
            let reserved = || (requests.bytes_reserved(), responses.pool.bytes_reserved());
            let (of_request, of_responses) = reserved();
            assert_eq!(of_request > 0, is_of_request, "{bytes}");
            assert_eq!(of_responses > 0, !is_of_request, "{bytes}");
            let rest = next(&mut body).await;
            drop(body);
            let sent = first.len() + rest.as_ref().map_or(0, Bytes::len);
            assert_eq!(sent, bytes);
            drop(first);
            assert_eq!(reserved() == (0, 0), rest.is_none(), "{bytes}");
            drop(rest);
            assert_eq!(reserved(), (0, 0));
        }
    }

    #[tokio::test]
    async fn a_large_read_is_refused_without_memory_and_the_result_of_a_batch_is_not() {
        let responses = responses(100);
        let _used = responses.pool.try_reserve(1);
        let requests = MemoryPool::new(1 << 20);
        let memory = || {
            let request = RequestMemory::reserve(&requests).expect("it is free");
            (
                responses.memory_for(Caller::default(), request.clone()),
                request,
            )
        };
        let result = "x".repeat(100_000);
        let refused = memory()
            .0
            .respond(result.clone())
            .expect_err("there is no memory");
        assert!(refused.may_succeed_later());
        let (of_batch, request) = memory();
        assert!(request.grow(20_000));
        of_batch
            .respond(result)
            .expect("its request has a third of it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_reads_slowly_is_not_disconnected() {
        let responses = responses(1 << 20);
        let (slow, closed) = caller();
        let request = RequestMemory::reserve(&MemoryPool::new(REQUEST_BYTES));
        let memory = responses.memory_for(slow, request.expect("it is free"));
        let message = "x".repeat(4 * CHUNK_BYTES_MAX);
        memory.respond(message.clone()).expect("there is memory");
        let body = Body::new(axum::body::Body::from(message));
        let mut body = memory.keep_until_sent(Response::new(body)).into_body();
        for _ in 0..3 {
            advance(UNREAD_MAX / 2).await;
            drop(next(&mut body).await);
            responses.close_unread();
        }
        assert!(!closed.is_cancelled());
        advance(UNREAD_MAX).await;
        responses.close_unread();
        assert!(closed.is_cancelled());
    }

    #[tokio::test]
    async fn messages_of_a_stream_are_sent_whole_and_count_until_then() {
        let responses = responses(1_000);
        let memory = memory_of(&responses);
        let (sender, receiver) = channel(Bounds {
            messages_max: 9,
            bytes_max: 100,
        });
        for bytes in [100, 200, 300] {
            let message = Ok("x".repeat(bytes - 10));
            let counted = Counted::new(message, memory.reserve_message(bytes).await);
            sender.try_send(counted, 10).expect("there is room");
        }
        drop(sender);
        // As the transport encodes them.
        let empty = |message: Result<String, tonic::Status>| {
            assert_eq!(message.expect("it is one"), "");
            Ok::<_, Infallible>(Bytes::from_static(&[0; 5]))
        };
        let encoded = axum::body::Body::from_stream(memory.stream(receiver).map(empty));
        let body = Response::new(Body::new(encoded));
        let mut body = memory.keep_until_sent(body).into_body();
        let reserved = || responses.pool.bytes_reserved();
        let first = next(&mut body).await.expect("it is sent");
        assert_eq!(
            String::decode(&first[5..]).expect("it is one"),
            "x".repeat(90)
        );
        let second = next(&mut body).await;
        assert_eq!(reserved(), 600);
        drop(second);
        assert_eq!(reserved(), 400);
        let third = next(&mut body).await;
        assert_eq!(next(&mut body).await, None);
        drop((first, body));
        assert_eq!(reserved(), 300);
        drop(third);
        assert_eq!(reserved(), 0);
    }
}
