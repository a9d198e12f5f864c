//! One read of the state for all watchers of a key.

use crate::errors::Refusal;
use std::sync::Arc;
use tokio::sync::Mutex;

/// What the watchers of one key last read. Those that were woken by the same notification and ask the same question share
/// one read. It is kept until all of them have it, so a key with one watcher keeps nothing.
pub(crate) struct SharedLook<Q, T> {
    // A Tokio mutex: it is held while the state is read, so that the other watchers wait for that read.
    last: Mutex<Option<Look<Q, T>>>,
}

struct Look<Q, T> {
    /// The state is at least as new as this notification of the key.
    notification: u64,
    question: Q,
    found: Arc<T>,
    /// The watchers that may still ask for it.
    takers_left: usize,
}

impl<Q: PartialOrd, T> SharedLook<Q, T> {
    /// What the question finds in a state that is at least as new as a notification. `others_count` is the number of other
    /// watchers of the key.
    ///
    /// A watcher whose question lies behind the one that was asked last is slower than others. It reads for itself, and the
    /// others keep what they share.
    pub(crate) async fn find<Reading>(
        &self,
        notification: u64,
        question: Q,
        others_count: usize,
        read: impl FnOnce() -> Reading,
    ) -> Result<Arc<T>, Refusal>
    where
        Reading: Future<Output = Result<T, Refusal>>,
    {
        let mut kept = self.last.lock().await;
        if let Some(last) = kept.as_mut()
            && last.notification >= notification
        {
            if last.question == question {
                let found = last.found.clone();
                last.takers_left -= 1;
                if last.takers_left == 0 {
                    *kept = None;
                }
                return Ok(found);
            }
            if last.question > question {
                drop(kept);
                return read().await.map(Arc::new);
            }
        }
        let found = Arc::new(read().await?);
        *kept = (others_count > 0).then(|| Look {
            notification,
            question,
            found: found.clone(),
            takers_left: others_count,
        });
        Ok(found)
    }
}

impl<Q, T> Default for SharedLook<Q, T> {
    fn default() -> Self {
        Self {
            last: Mutex::new(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::task::yield_now;

    const WATCHERS: usize = 20;

    /// Looks that count how often the state was read: each read finds its number.
    #[derive(Default)]
    struct Counted {
        look: SharedLook<u64, u32>,
        reads_count: AtomicU32,
    }

    impl Counted {
        async fn find(&self, notification: u64, question: u64) -> u32 {
            let read = || async {
                yield_now().await;
                Ok(self.reads_count.fetch_add(1, Ordering::Relaxed) + 1)
            };
            let look = &self.look;
            let found = look.find(notification, question, WATCHERS - 1, read).await;
            *found.expect("the read succeeds")
        }
    }

    #[tokio::test]
    async fn watchers_of_the_same_change_share_one_read() {
        let counted = Counted::default();
        for notification in 1..=3 {
            let looks = (0..WATCHERS).map(|_| counted.find(notification, notification));
            let found = join_all(looks).await;
            assert_eq!(found, [u32::try_from(notification).unwrap(); WATCHERS]);
            assert!(counted.look.last.lock().await.is_none(), "all have it");
        }
    }

    #[tokio::test]
    async fn what_a_single_watcher_reads_is_not_kept() {
        let look = SharedLook::<u64, u32>::default();
        let found = look.find(1, 1, 0, || async { Ok(7) }).await;
        assert_eq!(*found.expect("the read succeeds"), 7);
        assert!(look.last.lock().await.is_none());
    }

    #[tokio::test]
    async fn a_slow_watcher_reads_for_itself_and_the_others_keep_theirs() {
        let counted = Counted::default();
        assert_eq!(counted.find(1, 10).await, 1);
        assert_eq!(counted.find(1, 5).await, 2);
        assert_eq!(counted.find(1, 10).await, 1);
        assert_eq!(counted.find(2, 10).await, 3);
    }

    #[tokio::test]
    async fn a_failed_read_is_not_shared() {
        let look = SharedLook::<u64, u32>::default();
        let failed = look.find(1, 1, 1, || async { Err(Refusal::unavailable("no state")) });
        assert!(failed.await.is_err());
        let found = look.find(1, 1, 1, || async { Ok(7) }).await;
        assert_eq!(*found.expect("the read succeeds"), 7);
    }
}
