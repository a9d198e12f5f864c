//! The messages that have arrived on a stream, and their memory.

use crate::errors::Refusal;
use crate::memory::Reservation;
use prost::Message;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::codegen::Bytes;

/// The memory of a message until it is handled.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    reservation: Reservation,
    /// If it was received beyond the pool.
    exempt: Option<Arc<OwnedSemaphorePermit>>,
}

/// The messages that have arrived on one stream, in their order. For each one, tonic gives the service an
/// empty message, and the service takes the real one here.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrivedMessages {
    messages: Arc<Mutex<VecDeque<(Bytes, MessageMemory)>>>,
}

impl MessageMemory {
    /// Memory of a pool, and the permit of a message that was received beyond it.
    pub(super) fn new(reservation: Reservation, exempt: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            reservation,
            exempt: exempt.map(Arc::new),
        }
    }

    /// What counts against a pool, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.reservation.bytes()
    }

    /// Splits it into equal parts, one for each report in the message.
    pub(crate) fn into_parts(mut self, count: usize) -> impl Iterator<Item = Self> {
        let share = self.reservation.bytes() / count.max(1);
        (0..count).map(move |_| Self {
            reservation: self.reservation.split(share),
            exempt: self.exempt.clone(),
        })
    }

    /// Keeps up to `bytes` of it and releases the rest.
    pub(crate) fn keep(mut self, bytes: usize) -> Reservation {
        self.reservation.split(bytes)
    }
}

impl From<Reservation> for MessageMemory {
    fn from(reservation: Reservation) -> Self {
        Self::new(reservation, None)
    }
}

impl ArrivedMessages {
    /// Those of a stream, which the receiver has added to its request.
    ///
    /// # Errors
    /// An internal error if it has not.
    pub(crate) fn of<T>(request: &tonic::Request<T>) -> Result<Self, Refusal> {
        let messages = request.extensions().get::<Self>().cloned();
        messages.ok_or_else(|| {
            Refusal::internal("expected messages of a stream, but none were assigned".to_owned())
        })
    }

    /// The next message, when the transport has handed over an empty one.
    ///
    /// # Errors
    /// A message that cannot be decoded.
    pub(crate) fn take<M: Message + Default>(&self) -> Result<(M, MessageMemory), Status> {
        let (message, memory) = self
            .lock()
            .pop_front()
            .ok_or_else(|| Status::internal("expected a message, but no message has arrived"))?;
        let message = M::decode(message).map_err(|error| {
            let text =
                format!("expected a message of the stream, but it cannot be decoded: {error}");
            Status::invalid_argument(text)
        })?;
        Ok((message, memory))
    }

    pub(super) fn add(&self, message: (Bytes, MessageMemory)) {
        self.lock().push_back(message);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Bytes, MessageMemory)>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
