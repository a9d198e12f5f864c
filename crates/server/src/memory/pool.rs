//! Memory of one owner: reserved before it is used, given back when it is not used any longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory of one owner.
#[derive(Clone, Debug)]
pub(crate) struct MemoryPool {
    bytes_max: usize,
    // One permit for each byte.
    free: Arc<Semaphore>,
    refused: Arc<AtomicU64>,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    pool: MemoryPool,
    permit: OwnedSemaphorePermit,
}

impl MemoryPool {
    /// A pool of `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            free: Arc::new(Semaphore::new(bytes_max.min(Semaphore::MAX_PERMITS))),
            refused: Arc::default(),
        }
    }

    /// The size of the pool. In bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// What is reserved now. In bytes.
    pub(crate) fn bytes_reserved(&self) -> usize {
        self.bytes_max.saturating_sub(self.free.available_permits())
    }

    /// How many reservations were not free when they were tried, since the pool was made.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// An empty reservation, to which others can be merged.
    pub(crate) fn empty(&self) -> Reservation {
        self.try_reserve(0).expect("zero bytes are always free")
    }

    /// Reserves `bytes`; `None` if they are not free now.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let permits = u32::try_from(bytes).ok();
        let permit = permits.and_then(|permits| {
            let free = Arc::clone(&self.free);
            free.try_acquire_many_owned(permits).ok()
        });
        if permit.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        Some(Reservation {
            pool: self.clone(),
            permit: permit?,
        })
    }

    /// Reserves `bytes` as soon as they are free, in the order of the callers; `None` if the pool is smaller than that.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        if bytes > self.bytes_max {
            return None;
        }
        let permits = u32::try_from(bytes).ok()?;
        let permit = Arc::clone(&self.free).acquire_many_owned(permits).await;
        Some(Reservation {
            pool: self.clone(),
            permit: permit.ok()?,
        })
    }
}

impl Reservation {
    /// What is reserved. In bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.permit.num_permits()
    }

    /// Splits off up to `bytes` of it.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes());
        let permit = self.permit.split(bytes);
        Self {
            pool: self.pool.clone(),
            permit: permit.expect("it has that many"),
        }
    }

    /// Whether both are of the same pool.
    pub(crate) fn is_of_same_pool(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pool.free, &other.pool.free)
    }

    /// Adds another reservation of the same pool.
    pub(crate) fn merge(&mut self, other: Self) {
        self.permit.merge(other.permit);
    }

    /// Adds `bytes`; false if they are not free now.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let more = self.pool.try_reserve(bytes);
        more.is_some_and(|more| {
            self.merge(more);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::task::{JoinSet, yield_now};

    #[test]
    fn a_pool_never_reserves_more_than_it_has() {
        let pool = MemoryPool::new(100);
        let mut first = pool.try_reserve(60).expect("it is free");
        assert!(pool.try_reserve(41).is_none());
        assert!(!first.grow(41) && first.grow(40));
        assert_eq!(pool.bytes_reserved(), 100);
        assert_eq!(pool.refused_count(), 2);
        drop(first.split(30));
        assert_eq!(pool.bytes_reserved(), 70);
        let rest = first.split(100);
        drop(first);
        assert_eq!(pool.bytes_reserved(), 70);
        drop(rest);
        assert_eq!(pool.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn callers_wait_in_their_order() {
        let pool = MemoryPool::new(100);
        let first = pool.reserve(60).await.expect("it is free");
        let mut large = Box::pin(pool.reserve(80));
        let mut small = Box::pin(pool.reserve(10));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(small.as_mut().now_or_never().is_none(), "it came later");
        drop(first);
        let large = large.await.expect("it fits");
        let small = small.await.expect("it fits");
        assert_eq!(pool.bytes_reserved(), 90);
        drop((large, small));
        assert!(pool.reserve(101).await.is_none(), "it never fits");
    }

    #[tokio::test]
    async fn callers_that_want_more_than_there_is_wait_and_never_hold_more() {
        let pool = MemoryPool::new(100);
        let mut callers = JoinSet::new();
        for number in 0..200 {
            let pool = pool.clone();
            callers.spawn(async move {
                let reserved = pool.reserve(1 + number % 40).await;
                let held = pool.bytes_reserved();
                yield_now().await;
                reserved.map(|_| held)
            });
        }
        let held: Option<Vec<usize>> = callers.join_all().await.into_iter().collect();
        let peak = held.expect("each fits").into_iter().max();
        assert!(
            peak.is_some_and(|peak| (80..=100).contains(&peak)),
            "{peak:?}"
        );
        assert_eq!(pool.bytes_reserved(), 0);
    }
}
