//! How responses are sent: how much memory they may take until their callers have read them.
//!
//! A large response counts against the node's memory until it is sent, and so does each message of a stream. A caller that
//! does not read would keep that memory. So when none is left, the connection of the caller whose response has waited for
//! longest is closed, if it has waited for [`UNREAD_MAX`].

use crate::errors::Refusal;
use crate::limits::{
    RESPONSE_BYTES, RESPONSE_COPIES, UNREAD_CHECK_INTERVAL, UNREAD_MAX, VIEW_BYTES_MAX,
};
use crate::memory::{MemoryPool, Reservation};
use crate::receiving::RequestMemory;
use flotilla_leader::channel::Receiver;
use flotilla_replica::Caller;
use futures::Stream;
use hyper::body::{Frame, SizeHint};
use prost::Message;
use std::collections::BTreeMap;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::{Instant, interval_at};
use tonic::Request;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::Response;

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
    by_number: BTreeMap<u64, (Instant, Caller)>,
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
    caller: Caller,
}

/// The memory for the response to one caller.
#[derive(Clone, Debug)]
pub(crate) struct ResponseMemory {
    responses: Responses,
    caller: Caller,
    request: RequestMemory,
    /// What is encoded, or is encoded next, and is not part of the body yet.
    encoded: Encoded,
}

/// The memory of the messages that the next part of a body consists of.
#[derive(Clone, Debug, Default)]
struct Encoded {
    messages: Arc<Mutex<Vec<Unsent>>>,
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
            caller,
            request,
            encoded: Encoded::default(),
        }
    }

    /// Reserves memory for what is sent to `caller`; `None` if it is not free now.
    fn try_reserve(&self, bytes: usize, caller: &Caller) -> Option<Unsent> {
        let reservation = self.pool.try_reserve(bytes.min(self.pool.bytes_max()));
        if reservation.is_none() {
            self.close_unread();
        }
        Some(self.unsent(reservation?, caller))
    }

    /// Waits for memory for what is sent to `caller`. Cancel-safe.
    async fn reserve(&self, bytes: usize, caller: &Caller) -> Unsent {
        let reservation = self.reserve_from(&self.pool, bytes).await;
        self.unsent(reservation, caller)
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
        let mut reserving = std::pin::pin!(pool.reserve(bytes));
        let mut ticks = interval_at(Instant::now(), UNREAD_CHECK_INTERVAL);
        loop {
            tokio::select! {
                reservation = &mut reserving => {
                    return reservation.expect("a pool has as many bytes as it has at most");
                }
                _ = ticks.tick() => self.close_unread(),
            }
        }
    }

    fn unsent(&self, reservation: Reservation, caller: &Caller) -> Unsent {
        Unsent {
            reservation,
            place: Place::last(&self.unread, caller),
        }
    }

    /// Closes the connection of the caller whose response has waited for longest, if it has waited for long.
    pub(crate) fn close_unread(&self) {
        let mut unread = lock(&self.unread);
        let Some(oldest) = unread.by_number.first_entry() else {
            return;
        };
        let waited = oldest.get().0.elapsed();
        if waited >= UNREAD_MAX {
            tracing::warn!(
                seconds = waited.as_secs(),
                "closing a connection: its caller does not read its responses, and other responses need the memory"
            );
            let (_, caller) = oldest.remove();
            caller.disconnect();
        }
    }
}

fn lock(unread: &Mutex<Unread>) -> MutexGuard<'_, Unread> {
    unread.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    fn last(unread: &Arc<Mutex<Unread>>, caller: &Caller) -> Self {
        let mut places = lock(unread);
        let number = places.number_next;
        places.number_next += 1;
        let entry = (Instant::now(), caller.clone());
        places.by_number.insert(number, entry);
        Self {
            unread: unread.clone(),
            number,
            caller: caller.clone(),
        }
    }

    /// A place that begins now.
    fn renewed(&self) -> Self {
        Self::last(&self.unread, &self.caller)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.unread).by_number.remove(&self.number);
    }
}

impl Unsent {
    /// Splits off up to `bytes` of it, as the memory of a message that is to be sent now. The caller has read, so what is left
    /// waits from now on.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        self.place = self.place.renewed();
        Self {
            reservation: self.reservation.split(bytes),
            place: self.place.renewed(),
        }
    }
}

impl ResponseMemory {
    /// The memory of the response to a request, which the middleware has added to it.
    ///
    /// # Errors
    /// An internal error if it has not.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Refusal> {
        let memory = request.extensions().get::<Self>().cloned();
        memory.ok_or_else(|| {
            Refusal::internal("expected memory for the response, but none was assigned".to_owned())
        })
    }

    /// Waits for memory for a message of a stream. Cancel-safe.
    pub(crate) async fn reserve_message(&self, bytes: usize) -> Unsent {
        self.responses.reserve(bytes, &self.caller).await
    }

    /// What is sent to the caller, in memory that is reserved already.
    pub(crate) fn unsent(&self, reservation: Reservation) -> Unsent {
        self.responses.unsent(reservation, &self.caller)
    }

    /// Waits for memory for what a watch reads.
    pub(crate) async fn reserve_view(&self) -> Reservation {
        self.responses.reserve_view().await
    }

    /// A unary response, whose memory counts until it is sent. It uses that of its request if that is enough, so no small
    /// response and no result of a batch is refused.
    ///
    /// # Errors
    /// That of an overloaded node.
    pub(crate) fn respond<T: Message>(&self, message: T) -> Result<tonic::Response<T>, Refusal> {
        let bytes = message.encoded_len();
        let bytes = if bytes > RESPONSE_BYTES {
            bytes.saturating_mul(RESPONSE_COPIES)
        } else {
            RESPONSE_BYTES
        };
        let unsent = match self.request.take(bytes) {
            Some(memory) => Some(self.unsent(memory)),
            None => self.responses.try_reserve(bytes, &self.caller),
        };
        let unsent = unsent.ok_or_else(|| {
            Refusal::overloaded(
                "expected enough memory for the response, but unsent responses use all of it",
            )
        })?;
        self.encoded.add(unsent);
        Ok(tonic::Response::new(message))
    }

    /// A stream of messages, which keep their memory until they are sent.
    pub(crate) fn stream<T>(&self, messages: Receiver<Counted<T>>) -> CountedStream<T> {
        CountedStream {
            messages,
            encoded: self.encoded.clone(),
        }
    }

    /// The response whose body keeps the memory of what it consists of until that is sent. That of the request is released.
    pub(crate) fn keep_until_sent(self, response: Response<Body>) -> Response<Body> {
        self.request.release();
        response.map(|body| {
            Body::new(Sending {
                body,
                encoded: self.encoded,
            })
        })
    }
}

impl Encoded {
    fn add(&self, message: Unsent) {
        self.lock().push(message);
    }

    fn take(&self) -> Vec<Unsent> {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Unsent>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body whose parts keep the memory of their messages.
struct Sending {
    body: Body,
    encoded: Encoded,
}

/// A part of a body, and the memory of its messages. The transport may keep it after the body has ended.
struct Part {
    bytes: Bytes,
    _memory: Vec<Unsent>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Sending {
    fn counted(&self, bytes: Bytes) -> Bytes {
        let memory = self.encoded.take();
        if memory.is_empty() {
            return bytes;
        }
        Bytes::from_owner(Part {
            bytes,
            _memory: memory,
        })
    }
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let next = Pin::new(&mut self.body).poll_frame(context);
        next.map_ok(|frame| frame.map_data(|bytes| self.counted(bytes)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A message of a stream, and its memory.
pub(crate) struct Counted<T> {
    pub(crate) message: T,
    /// `None` if the message is too small to count.
    pub(crate) memory: Option<Unsent>,
}

impl<T> Counted<T> {
    /// A message whose memory is reserved.
    pub(crate) fn new(message: T, memory: Unsent) -> Self {
        Self {
            message,
            memory: Some(memory),
        }
    }

    /// A message that is too small to count.
    pub(crate) fn small(message: T) -> Self {
        Self {
            message,
            memory: None,
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
/// The transport encodes the messages that it takes into one part of the body, before it takes others.
pub(crate) struct CountedStream<T> {
    messages: Receiver<Counted<T>>,
    encoded: Encoded,
}

impl<T> Stream for CountedStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let next = Pin::new(&mut self.messages).poll_next(context);
        next.map(|next| {
            let Counted { message, memory } = next?;
            memory
                .into_iter()
                .for_each(|memory| self.encoded.add(memory));
            Some(message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let request = RequestMemory::reserve(&MemoryPool::new(RESPONSE_BYTES));
        responses.memory_for(Caller::default(), request.expect("it is free"))
    }

    fn caller() -> (Caller, CancellationToken) {
        let closing = CancellationToken::new();
        (Caller::default().with_closing(closing.clone()), closing)
    }

    #[tokio::test(start_paused = true)]
    async fn the_caller_that_has_read_nothing_for_longest_is_disconnected_for_another_one() {
        let responses = responses(100);
        let ((silent, silent_closed), (slow, slow_closed)) = (caller(), caller());
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
        let (silent, closed) = caller();
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
    async fn a_response_counts_until_it_is_sent_and_a_small_one_uses_its_requests_memory() {
        let responses = responses(RESPONSE_COPIES * 2 * RESPONSE_BYTES);
        let requests = MemoryPool::new(RESPONSE_BYTES);
        let request = RequestMemory::reserve(&requests).expect("it is free");
        let memory = responses.memory_for(Caller::default(), request);
        // A message whose encoded form has these bytes: a field of text takes 3 more, if it is longer than 127 bytes.
        let message = |bytes: usize| "x".repeat(bytes - 3);
        let respond = |bytes| memory.respond(message(bytes));
        respond(RESPONSE_BYTES).expect("the request has as much");
        assert_eq!(responses.pool.bytes_reserved(), 0);
        respond(2 * RESPONSE_BYTES).expect("there is memory");
        let refused = respond(RESPONSE_BYTES + 1).expect_err("all is used");
        assert!(refused.may_succeed_later());
        let body = Body::new(axum::body::Body::from("response"));
        let mut body = memory.keep_until_sent(Response::new(body)).into_body();
        let part = next(&mut body).await;
        drop(body);
        assert_eq!(part.as_deref(), Some(&b"response"[..]));
        let reserved = || (responses.pool.bytes_reserved(), requests.bytes_reserved());
        let all = (responses.pool.bytes_max(), requests.bytes_max());
        assert_eq!(reserved(), all, "the transport has it");
        drop(part);
        assert_eq!(reserved(), (0, 0));
    }

    #[tokio::test]
    async fn messages_of_a_stream_count_until_they_are_sent() {
        let responses = responses(1_000);
        let memory = memory_of(&responses);
        let (sender, receiver) = channel(Bounds {
            messages_max: 9,
            bytes_max: 100,
        });
        for bytes in [100, 200, 300] {
            let counted = Counted::new(bytes, memory.reserve_message(bytes).await);
            sender.try_send(counted, 10).expect("there is room");
        }
        drop(sender);
        let encode = |bytes| Ok::<_, Infallible>(Bytes::from(vec![0; bytes]));
        let encoded = axum::body::Body::from_stream(memory.stream(receiver).map(encode));
        let mut body = memory
            .keep_until_sent(Response::new(Body::new(encoded)))
            .into_body();
        let reserved = || responses.pool.bytes_reserved();
        let first = next(&mut body).await;
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
