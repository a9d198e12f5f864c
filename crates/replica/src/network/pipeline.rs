//! The appends that are on their way to a follower.
//!
//! openraft notes when it last heard from a follower: when the youngest request was sent of which a response covers the last
//! entry. A request without entries carries only a commit position and ends with the same entry as the request before it.
//! The response to that one would count for both, although the follower may not have received the younger request. A leader
//! that was paused, and replaced meanwhile, could thus take an old response for a new one and answer a linearizable read with
//! stale data.
//!
//! So a response is passed on only if no younger request ends with the entry that it covers; otherwise, the response to that
//! request, which says as much, is. While openraft handles a response, it makes no request.

use crate::raft::type_config::{LogId, TypeConfig};
use futures::{Stream, StreamExt};
use openraft::entry::RaftEntry;
use openraft::raft::AppendEntriesRequest;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

type Position = Option<LogId>;

/// The requests of one stream of appends that have no response yet. Responses come in the order of the requests.
#[derive(Clone, Default)]
pub(super) struct Pipeline(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The last entry that the follower has after each request.
    unanswered: VecDeque<Position>,
    /// Whether openraft handles a response.
    is_handling: bool,
    /// Wakes the requests, if they wait for that.
    waker: Option<Waker>,
}

impl Pipeline {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests, noted as they are made.
    pub(super) fn requests<S>(&self, input: S) -> Requests<S> {
        Requests {
            input,
            pipeline: self.clone(),
        }
    }

    pub(super) fn is_response_due(&self) -> bool {
        !self.state().unanswered.is_empty()
    }

    /// Notes the response to the oldest request: the follower has the entries up to `matching`. Returns whether openraft may
    /// see it. If so, no request is made until [`Self::resume`].
    pub(super) fn answer(&self, matching: &Position) -> bool {
        let mut state = self.state();
        state.unanswered.pop_front();
        let next = state.unanswered.front();
        state.is_handling = next.is_none_or(|last| last > matching);
        state.is_handling
    }

    /// openraft has handled the last response.
    pub(super) fn resume(&self) {
        let mut state = self.state();
        state.is_handling = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// The requests of one stream of appends.
pub(super) struct Requests<S> {
    input: S,
    pipeline: Pipeline,
}

impl<S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin> Stream for Requests<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = &mut *self;
        // Held while openraft makes a request, so that it does not handle a response meanwhile.
        let mut state = this.pipeline.state();
        if state.is_handling {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let polled = this.input.poll_next_unpin(context);
        if let Poll::Ready(Some(request)) = &polled {
            let last = request.entries.last().map(RaftEntry::log_id);
            state.unanswered.push_back(last.or(request.prev_log_id));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::channel::mpsc;
    use openraft::type_config::alias::VoteOf;

    fn position(index: u64) -> Position {
        Some(LogId::new_term_index(1, index))
    }

    /// A request without entries after this position.
    fn commit(index: u64) -> AppendEntriesRequest<TypeConfig> {
        AppendEntriesRequest {
            vote: VoteOf::<TypeConfig>::new_committed(1, 1),
            prev_log_id: position(index),
            entries: Vec::new(),
            leader_commit: position(index),
        }
    }

    /// A pipeline with its requests, and what makes them.
    struct Stream {
        pipeline: Pipeline,
        sender: mpsc::Sender<AppendEntriesRequest<TypeConfig>>,
        requests: Requests<mpsc::Receiver<AppendEntriesRequest<TypeConfig>>>,
    }

    /// A stream with these requests.
    fn stream(positions: &[u64]) -> Stream {
        let (sender, receiver) = mpsc::channel(8);
        let pipeline = Pipeline::default();
        let requests = pipeline.requests(receiver);
        let mut stream = Stream {
            pipeline,
            sender,
            requests,
        };
        for index in positions {
            stream.sender.try_send(commit(*index)).expect("it has room");
            assert!(stream.requests.next().now_or_never().is_some());
        }
        stream
    }

    #[test]
    fn a_response_is_passed_on_unless_a_younger_request_ends_with_the_same_entry() {
        let Stream { pipeline, .. } = stream(&[4, 5, 5, 5, 6]);
        let passed = [4, 5, 5, 5, 6].map(|index| pipeline.answer(&position(index)));
        assert_eq!(passed, [true, false, false, true, true]);
        assert!(!pipeline.is_response_due());
    }

    #[test]
    fn no_request_is_made_while_a_response_is_handled() {
        let Stream {
            pipeline,
            mut sender,
            mut requests,
        } = stream(&[5]);
        sender.try_send(commit(5)).expect("it has room");
        assert!(pipeline.answer(&position(5)));
        let mut next = requests.next();
        assert!((&mut next).now_or_never().is_none());
        assert!(!pipeline.is_response_due());
        pipeline.resume();
        assert!(next.now_or_never().is_some());
        assert!(pipeline.is_response_due());
    }
}
