//! The appends that are on their way to a follower.
//!
//! openraft dates its last contact with a follower by the sending time of the latest request whose last entry a response
//! covers. A request without entries carries only a commit position and ends with the same entry as the request before it.
//! So the response to that one would count for both, although the follower may not have received the later request. A
//! leader that was replaced, and sees delayed responses, could thus confirm a linearizable read with a response from before
//! the read.
//!
//! A response is therefore passed on only if no later request ends with the entry that it covers. Otherwise it is dropped:
//! the response to that later request says the same. A commit can wait for that response, which is one round trip at most;
//! if the stream ends before, openraft sends the entries again. A request made between the arrival of a response and its
//! handling would be dated by it, too, so openraft makes no request during this time.

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
    /// The last entries that the follower has before and after each request.
    unanswered: VecDeque<(Position, Position)>,
    /// Whether openraft is handling a response.
    is_handling: bool,
    /// Wakes the request stream afterwards.
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
    /// see it. If so, no request is made until [`Self::note_handled`].
    pub(super) fn note_response(&self, matching: &Position) -> bool {
        let mut state = self.state();
        state.unanswered.pop_front();
        let next = state.unanswered.front();
        state.is_handling =
            next.is_none_or(|(previous, last)| previous >= matching && last > matching);
        state.is_handling
    }

    /// Notes that openraft has handled the last response.
    pub(super) fn note_handled(&self) {
        let mut state = self.state();
        state.is_handling = false;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
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
            let range = (request.prev_log_id, last.or(request.prev_log_id));
            state.unanswered.push_back(range);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::channel::mpsc;
    use openraft::EntryPayload;
    use openraft::type_config::alias::{EntryOf, VoteOf};

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

    /// A request with the entries between these positions.
    fn append(previous: u64, last: u64) -> AppendEntriesRequest<TypeConfig> {
        let entry = |index| EntryOf::<TypeConfig> {
            log_id: LogId::new_term_index(1, index),
            payload: EntryPayload::Blank,
        };
        AppendEntriesRequest {
            entries: (previous + 1..=last).map(entry).collect(),
            ..commit(previous)
        }
    }

    /// A pipeline with its requests, and what makes them.
    struct Stream {
        pipeline: Pipeline,
        sender: mpsc::Sender<AppendEntriesRequest<TypeConfig>>,
        requests: Requests<mpsc::Receiver<AppendEntriesRequest<TypeConfig>>>,
    }

    /// A stream with these requests.
    fn stream<const N: usize>(made: [AppendEntriesRequest<TypeConfig>; N]) -> Stream {
        let (sender, receiver) = mpsc::channel(8);
        let pipeline = Pipeline::default();
        let requests = pipeline.requests(receiver);
        let mut stream = Stream {
            pipeline,
            sender,
            requests,
        };
        for request in made {
            stream.sender.try_send(request).expect("it has room");
            assert!(stream.requests.next().now_or_never().is_some());
        }
        stream
    }

    #[test]
    fn a_response_is_passed_on_unless_a_later_request_ends_with_the_same_entry() {
        let Stream { pipeline, .. } = stream([
            append(2, 4),
            append(4, 5),
            commit(5),
            commit(5),
            append(5, 7),
        ]);
        let passed = [4, 5, 5, 5, 7].map(|index| pipeline.note_response(&position(index)));
        assert_eq!(passed, [true, false, false, true, true]);
        assert!(!pipeline.is_response_due());
    }

    #[test]
    fn no_request_is_made_while_a_response_is_handled() {
        let Stream {
            pipeline,
            mut sender,
            mut requests,
        } = stream([append(4, 5)]);
        sender.try_send(commit(5)).expect("it has room");
        assert!(pipeline.note_response(&position(5)));
        let mut next = requests.next();
        assert!((&mut next).now_or_never().is_none());
        assert!(!pipeline.is_response_due());
        pipeline.note_handled();
        assert!(next.now_or_never().is_some());
        assert!(pipeline.is_response_due());
    }
}
