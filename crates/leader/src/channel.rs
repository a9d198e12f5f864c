//! A channel that is bounded in messages and in bytes: neither many small messages nor a few large
//! ones can fill a node's memory because of a slow reader.

use futures::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The capacity of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many messages it holds.
    pub messages_max: usize,
    /// How many bytes it holds. A larger message counts as this many, so that each fits eventually.
    pub bytes_max: u32,
}

/// The message was not sent: the channel is full, or its receiver is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSent;

/// The sending end.
pub struct Sender<T> {
    messages: mpsc::Sender<SizedMessage<T>>,
    room: Arc<Semaphore>,
    bytes_max: u32,
}

/// The receiving end.
pub struct Receiver<T> {
    messages: mpsc::Receiver<SizedMessage<T>>,
}

/// Room for one message.
pub struct Permit<'s, T> {
    room: OwnedSemaphorePermit,
    place: mpsc::Permit<'s, SizedMessage<T>>,
}

/// A message and the capacity that it holds until it is received.
struct SizedMessage<T> {
    message: T,
    _room: OwnedSemaphorePermit,
}

/// Makes a channel.
#[must_use]
pub fn channel<T>(bounds: Bounds) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(bounds.messages_max);
    let room = Semaphore::new(usize::try_from(bounds.bytes_max).unwrap_or(usize::MAX));
    let sender = Sender {
        messages: sender,
        room: Arc::new(room),
        bytes_max: bounds.bytes_max,
    };
    (sender, Receiver { messages: receiver })
}

impl<T> Sender<T> {
    /// Waits until there is room for a message of `bytes` bytes. Cancel-safe.
    ///
    /// # Errors
    /// [`NotSent`] if the receiver is gone.
    pub async fn reserve(&self, bytes: usize) -> Result<Permit<'_, T>, NotSent> {
        let room = Arc::clone(&self.room).acquire_many_owned(self.weight(bytes));
        let room = room.await.map_err(|_| NotSent)?;
        let place = self.messages.reserve().await.map_err(|_| NotSent)?;
        Ok(Permit { room, place })
    }

    /// Sends a message of `bytes` bytes if there is room for it now.
    ///
    /// # Errors
    /// [`NotSent`] if the channel is full, or the receiver is gone.
    pub fn try_send(&self, message: T, bytes: usize) -> Result<(), NotSent> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(self.weight(bytes));
        let room = room.map_err(|_| NotSent)?;
        let weighed = SizedMessage {
            message,
            _room: room,
        };
        self.messages.try_send(weighed).map_err(|_| NotSent)
    }

    /// Waits until the receiver is gone.
    pub async fn closed(&self) {
        self.messages.closed().await;
    }

    fn weight(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}

impl<T> Permit<'_, T> {
    /// Sends the message.
    pub fn send(self, message: T) {
        self.place.send(SizedMessage {
            message,
            _room: self.room,
        });
    }
}

// A derived impl would require `T: Clone`.
impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            room: Arc::clone(&self.room),
            bytes_max: self.bytes_max,
        }
    }
}

impl<T> Receiver<T> {
    /// The next message; `None` once all senders are gone and nothing is left.
    pub async fn recv(&mut self) -> Option<T> {
        self.messages.recv().await.map(|weighed| weighed.message)
    }

    /// The next message, if there is one already.
    pub fn try_recv(&mut self) -> Option<T> {
        self.messages.try_recv().ok().map(|weighed| weighed.message)
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.messages
            .poll_recv(context)
            .map(|weighed| weighed.map(|weighed| weighed.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const BOUNDS: Bounds = Bounds {
        messages_max: 3,
        bytes_max: 100,
    };

    #[tokio::test]
    async fn large_messages_fill_the_channel_before_many_do() {
        let (sender, mut receiver) = channel(BOUNDS);
        assert_eq!(sender.try_send('a', 60), Ok(()));
        assert_eq!(sender.try_send('b', 60), Err(NotSent));
        assert!(sender.reserve(60).now_or_never().is_none());
        assert_eq!(receiver.recv().await, Some('a'));
        assert_eq!(sender.try_send('b', 60), Ok(()));
        assert_eq!(receiver.try_recv(), Some('b'));
        assert_eq!(receiver.try_recv(), None);
    }

    #[test]
    fn many_messages_fill_the_channel_however_small_they_are() {
        let (sender, _receiver) = channel(BOUNDS);
        for number in 0..3 {
            assert_eq!(sender.try_send(number, 0), Ok(()));
        }
        assert_eq!(sender.try_send(3, 0), Err(NotSent));
    }

    #[tokio::test]
    async fn a_message_that_is_larger_than_the_channel_passes_alone() {
        let (sender, mut receiver) = channel(BOUNDS);
        sender.reserve(usize::MAX).await.ok().unwrap().send('a');
        assert_eq!(sender.try_send('b', 1), Err(NotSent));
        assert_eq!(receiver.recv().await, Some('a'));
        assert_eq!(sender.try_send('b', 1), Ok(()));
    }

    #[tokio::test]
    async fn a_sender_that_waits_for_room_learns_that_the_receiver_was_dropped() {
        let (sender, receiver) = channel(BOUNDS);
        assert_eq!(sender.try_send('a', 100), Ok(()));
        let waiting = sender.reserve(100);
        drop(receiver);
        assert_eq!(waiting.await.err(), Some(NotSent));
    }
}
