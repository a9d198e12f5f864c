//! Notifies drivers and watchers of what was applied here (design rule 6).

use flotilla_engine::{Effect, NodeId};
use std::sync::Arc;
use tokio::sync::broadcast;

/// The notices that a slow subscriber may lag behind; beyond that it gets [`Notice::Lost`].
const NOTICES_MAX: usize = 4_096;

/// What one applied entry asks of the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedBatch {
    /// The entry's index.
    pub index: u64,
    /// The term in which it was proposed.
    pub term: u64,
    /// The leader that proposed it.
    pub node: NodeId,
    /// The replicated time after it, in milliseconds.
    pub now_ms: u64,
    /// The polls that the entry's offers came from, and the slots that each offered: the proposer
    /// gets them back, except those that the effects use.
    pub offers: Vec<(u64, u32)>,
    /// The hints, in order.
    pub effects: Vec<Effect>,
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An entry with effects or offers was applied.
    Applied(Arc<AppliedBatch>),
    /// Notices were lost, or the state was replaced by a snapshot: the subscriber must read the
    /// state.
    Lost,
}

/// The sending side; applying never waits for it.
#[derive(Clone)]
pub(crate) struct Feed {
    sender: broadcast::Sender<Notice>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(NOTICES_MAX),
        }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription {
            receiver: self.sender.subscribe(),
        }
    }

    pub(crate) fn publish(&self, notice: Notice) {
        // There may be no subscriber, which is not a failure.
        drop(self.sender.send(notice));
    }
}

/// What is applied on this node from now on, in order.
pub struct Subscription {
    receiver: broadcast::Receiver<Notice>,
}

impl Subscription {
    /// The next notice; `None` once the replica has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.receiver.recv().await {
            Ok(notice) => Some(notice),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Notice::Lost),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(index: u64) -> Notice {
        let node = NodeId(1);
        Notice::Applied(Arc::new(AppliedBatch {
            index,
            term: 1,
            node,
            now_ms: 0,
            offers: vec![],
            effects: vec![],
        }))
    }

    #[tokio::test]
    async fn a_slow_subscriber_learns_that_it_lost_notices_and_continues() {
        let feed = Feed::new();
        let mut subscription = feed.subscribe();
        let published = NOTICES_MAX as u64 + 3;
        for index in 0..published {
            feed.publish(batch(index));
        }
        assert_eq!(subscription.next().await, Some(Notice::Lost));
        assert_eq!(subscription.next().await, Some(batch(3)));
        drop(feed);
        for index in 4..published {
            assert_eq!(subscription.next().await, Some(batch(index)));
        }
        assert_eq!(subscription.next().await, None);
    }
}
