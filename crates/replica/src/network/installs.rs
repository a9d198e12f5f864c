//! The snapshot that a member receives: one at a time, and the newest leader's.

use crate::inspection::PendingInstall;
use crate::log::vote::Vote;
use crate::network::calls::PeerError;
use flotilla_engine::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The snapshot that is being received.
///
/// Overlapping installs are a likely trigger of openraft's issue 2116. The sender of one may be gone without a sign, so a
/// newer leader ends it.
#[derive(Default)]
pub(crate) struct Installs {
    /// Held while a snapshot is received.
    running: tokio::sync::Mutex<()>,
    /// Installs that were refused since the start.
    refused: AtomicU64,
    latest: Mutex<Option<Latest>>,
}

/// The install that runs, or that waits for an older one to end.
struct Latest {
    vote: Vote,
    since: Instant,
    stop: CancellationToken,
}

/// The right to install a snapshot.
pub(crate) struct Install<'a> {
    installs: &'a Installs,
    vote: Vote,
    stop: CancellationToken,
    running: Option<tokio::sync::MutexGuard<'a, ()>>,
}

impl Installs {
    /// Begins to receive a snapshot from the leader with this vote. Ends an install that an older leader has begun.
    ///
    /// # Errors
    /// [`PeerError::Failed`] if the same or a newer leader's snapshot is being received.
    pub(crate) async fn begin(&self, vote: Vote) -> Result<Install<'_>, PeerError> {
        let stop = CancellationToken::new();
        let latest = Latest {
            vote,
            since: Instant::now(),
            stop: stop.clone(),
        };
        self.replace(latest)?;
        // Before the wait, which may be abandoned.
        let mut install = Install {
            installs: self,
            vote,
            stop,
            running: None,
        };
        install.running = Some(self.running.lock().await);
        Ok(install)
    }

    /// Installs that were refused since the start, because another one was being received.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The snapshot that is being received.
    pub(crate) fn pending(&self) -> Option<PendingInstall> {
        let latest = self.latest();
        latest.as_ref().map(|latest| PendingInstall {
            leader: NodeId(latest.vote.leader_id.voted_for),
            age: latest.since.elapsed(),
        })
    }

    fn replace(&self, latest: Latest) -> Result<(), PeerError> {
        let mut current = self.latest();
        if let Some(current) = current.as_ref() {
            if current.vote >= latest.vote {
                self.refused.fetch_add(1, Ordering::Relaxed);
                let text = "another snapshot is being installed";
                return Err(PeerError::Failed(text.to_owned()));
            }
            current.stop.cancel();
        }
        *current = Some(latest);
        Ok(())
    }

    fn latest(&self) -> MutexGuard<'_, Option<Latest>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Install<'_> {
    /// Waits until a newer leader sends a snapshot.
    pub(crate) async fn replaced(&self) -> PeerError {
        self.stop.cancelled().await;
        PeerError::Failed("a newer leader sends a snapshot".to_owned())
    }
}

impl Drop for Install<'_> {
    fn drop(&mut self) {
        let mut latest = self.installs.latest();
        if latest
            .as_ref()
            .is_some_and(|latest| latest.vote == self.vote)
        {
            *latest = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn leader(term: u64) -> Vote {
        Vote::new_committed(term, 1)
    }

    #[tokio::test]
    async fn a_newer_leader_ends_the_install_of_an_older_one() {
        let installs = Installs::default();
        let older = installs.begin(leader(1)).await.expect("none runs");
        for term in [0, 1] {
            let refused = installs.begin(leader(term)).await;
            assert!(matches!(refused, Err(PeerError::Failed(_))), "{term}");
        }
        assert!(older.replaced().now_or_never().is_none());
        let mut newer = Box::pin(installs.begin(leader(2)));
        assert!(
            (&mut newer).now_or_never().is_none(),
            "the older one has not ended"
        );
        assert!(older.replaced().now_or_never().is_some());
        drop(older);
        let newer = newer.await.expect("the older one has ended");
        assert!(installs.begin(leader(2)).await.is_err());
        drop(newer);
        assert!(installs.begin(leader(1)).await.is_ok());
    }

    #[tokio::test]
    async fn an_install_that_is_abandoned_before_it_begins_is_forgotten() {
        let installs = Installs::default();
        let older = installs.begin(leader(1)).await.expect("none runs");
        let mut newer = Box::pin(installs.begin(leader(2)));
        assert!((&mut newer).now_or_never().is_none());
        drop(newer);
        drop(older);
        assert!(installs.begin(leader(1)).await.is_ok());
    }
}
