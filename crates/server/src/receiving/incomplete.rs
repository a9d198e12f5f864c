//! Requests and messages that have arrived only in part. The node ends the oldest one when it needs memory.

use crate::errors::{Refusal, ServerCode};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

/// The requests, or the messages of streams, that have arrived in part, oldest first.
#[derive(Clone, Debug)]
pub(super) struct IncompleteMessages {
    /// For a further one, the oldest one is ended.
    count_max: usize,
    messages: Arc<Mutex<Numbered>>,
}

#[derive(Debug, Default)]
struct Numbered {
    number_next: u64,
    by_number: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    /// Dropping it ends the request or the stream.
    _ends: oneshot::Sender<()>,
}

/// Something that has arrived in part, among the others. It ends at its deadline, or when the node needs its memory.
#[derive(Debug)]
pub(super) struct IncompleteMessage {
    place: Place,
    deadline: Pin<Box<Sleep>>,
}

/// A place among those that have arrived in part, until it is dropped.
#[derive(Debug)]
struct Place {
    messages: IncompleteMessages,
    number: u64,
    ended: oneshot::Receiver<()>,
}

impl IncompleteMessages {
    /// None yet, and at most `count_max`.
    pub(super) fn new(count_max: usize) -> Self {
        Self {
            count_max,
            messages: Arc::default(),
        }
    }

    /// Adds one that has arrived in part, and that must arrive before `until`.
    pub(super) fn add(&self, until: Instant) -> IncompleteMessage {
        IncompleteMessage {
            place: self.place(),
            deadline: Box::pin(sleep_until(until)),
        }
    }

    fn place(&self) -> Place {
        let mut messages = self.lock();
        if messages.by_number.len() >= self.count_max {
            messages.by_number.pop_first();
        }
        let (ends, ended) = oneshot::channel();
        let number = messages.number_next;
        messages.number_next += 1;
        let since = Instant::now();
        let partial = Entry { since, _ends: ends };
        messages.by_number.insert(number, partial);
        Place {
            messages: self.clone(),
            number,
            ended,
        }
    }

    /// Ends the oldest one, if it began at least `age_min` ago.
    pub(super) fn end_oldest(&self, age_min: Duration) {
        let mut messages = self.lock();
        if let Some(oldest) = messages.by_number.first_entry()
            && oldest.get().since.elapsed() >= age_min
        {
            oldest.remove();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbered> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IncompleteMessage {
    /// Waits for the deadline, or until the node ends it. Returns the status.
    pub(super) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if Pin::new(&mut self.place.ended).poll(context).is_ready() {
            let text = "expected the rest of the request, but the node needs its memory for others";
            return Poll::Ready(Refusal::overloaded(text).into());
        }
        ready!(self.deadline.as_mut().poll(context));
        let message = "expected the request to arrive in time, but a part of it is missing";
        Poll::Ready(Refusal::new(ServerCode::BodyTimeout, message).into())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.messages.lock().by_number.remove(&self.number);
    }
}
