//! Requests that are one message: they count against the node's memory as they arrive, and have a deadline.

use super::incomplete::IncompleteMessage;
use super::{Receiver, overloaded};
use crate::limits::{MESSAGE_COPIES, REQUEST_BYTES};
use crate::memory::{MemoryPool, Reservation};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// The memory of one request, shared by what receives it and by what answers it.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory {
    reservation: Arc<Mutex<Reservation>>,
}

impl RequestMemory {
    /// Reserves what a request needs beside its message; `None` if that is not free.
    pub(crate) fn reserve(pool: &MemoryPool) -> Option<Self> {
        let reservation = pool.try_reserve(REQUEST_BYTES)?;
        Some(Self {
            reservation: Arc::new(Mutex::new(reservation)),
        })
    }

    /// Takes at most `bytes` of it for the response.
    pub(crate) fn take(&self, bytes: usize) -> Reservation {
        self.lock().split(bytes)
    }

    /// Releases it: the request is handled.
    pub(crate) fn release(&self) {
        let mut reservation = self.lock();
        let bytes = reservation.bytes();
        drop(reservation.split(bytes));
    }

    /// Reserves what `bytes` more of its message need; false if that is not free.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        self.lock().grow(bytes.saturating_mul(MESSAGE_COPIES))
    }

    fn lock(&self) -> MutexGuard<'_, Reservation> {
        self.reservation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that fails once its deadline has passed, or when the node has no memory for it.
pub(super) struct ReceivingRequest {
    body: Body,
    memory: RequestMemory,
    receiver: Receiver,
    until: Instant,
    // Most requests arrive as a whole and never wait.
    waiting: Option<IncompleteMessage>,
}

impl ReceivingRequest {
    /// The body of a request whose `memory` grows as it arrives. It must arrive before `until`.
    pub(super) fn new(
        body: Body,
        memory: RequestMemory,
        receiver: &Receiver,
        until: Instant,
    ) -> Self {
        Self {
            body,
            memory,
            receiver: receiver.clone(),
            until,
            waiting: None,
        }
    }

    /// Counts a part that has arrived.
    fn received(&self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Status> {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if self.memory.grow(bytes) {
            return Ok(frame);
        }
        self.receiver.free_memory();
        Err(overloaded().into())
    }
}

impl hyper::body::Body for ReceivingRequest {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.received(frame))),
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => {
                let this = &mut *self;
                let part = this
                    .waiting
                    .get_or_insert_with(|| this.receiver.requests.add(this.until));
                part.poll_end(context).map(|status| Some(Err(status)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
