//! Leader contact: when a leader last confirmed, with a quorum, what is committed, and whether this
//! node applies it.
//!
//! A follower that receives heartbeats knows nothing about the quorum behind them, and one that
//! receives none gets no notice of that. So each node requests a read index from time to time, as
//! its readers do, and records the response.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Why this node learns nothing of what the cluster commits: callers that wait here for a change must
/// wait at another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// No leader with a quorum has recently responded to this node.
    NoLeader,
    /// A leader has confirmed more than this node has applied, and the node applies nothing.
    NothingApplied,
}

/// When a leader last confirmed to this node what is committed.
#[derive(Debug)]
pub(crate) struct LeaderContact {
    // A std mutex and not tokio's because it is never held across an await.
    confirmed: Mutex<Confirmed>,
    standstill: watch::Sender<Option<Standstill>>,
    /// How long a confirmation counts.
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Confirmed {
    at: Option<Instant>,
    /// The highest index that was confirmed.
    index: u64,
}

impl LeaderContact {
    /// No contact yet. A confirmation will count for `timeout`, usually
    /// [`Tuning::leader_timeout`](crate::Tuning), so that a change of leaders does not interrupt the contact.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            confirmed: Mutex::default(),
            standstill: watch::Sender::new(Some(Standstill::NoLeader)),
            timeout,
        }
    }

    /// Whether a leader with a quorum has recently confirmed what is committed, to this node or to
    /// itself.
    pub(crate) fn is_recent(&self) -> bool {
        self.is_within(self.timeout)
    }

    /// A leader has now confirmed that the log is committed up to `index`.
    pub(crate) fn confirm(&self, index: u64) {
        {
            let mut confirmed = self.lock();
            confirmed.at = Some(Instant::now());
            confirmed.index = confirmed.index.max(index);
        }
        // A caller that has just read here may wait here.
        self.standstill.send_if_modified(|standstill| {
            let was_missing = *standstill == Some(Standstill::NoLeader);
            if was_missing {
                *standstill = None;
            }
            was_missing
        });
    }

    /// Why this node learns nothing, if it does not.
    pub(crate) fn standstill(&self) -> watch::Receiver<Option<Standstill>> {
        self.standstill.subscribe()
    }

    /// Sets why this node learns nothing.
    pub(crate) fn set_standstill(&self, found: Option<Standstill>) {
        self.standstill
            .send_if_modified(|standstill| std::mem::replace(standstill, found) != found);
    }

    /// Whether a leader has confirmed it within the last `time`.
    pub(crate) fn is_within(&self, time: Duration) -> bool {
        self.lock().at.is_some_and(|at| at.elapsed() < time)
    }

    /// The highest index that was confirmed.
    pub(crate) fn index(&self) -> u64 {
        self.lock().index
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Confirmed> {
        // No change panics halfway.
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_has_just_read_may_wait() {
        let contact = LeaderContact::new(Duration::from_secs(3));
        let standstill = contact.standstill();
        assert_eq!(*standstill.borrow(), Some(Standstill::NoLeader));
        contact.confirm(3);
        assert_eq!(*standstill.borrow(), None);
        contact.set_standstill(Some(Standstill::NothingApplied));
        contact.confirm(4);
        assert_eq!(*standstill.borrow(), Some(Standstill::NothingApplied));
        assert_eq!(contact.index(), 4);
    }
}
