//! Memory that namespaces share fairly.

use super::{MemoryPool, Reservation};
use flotilla_engine::ids::Namespace;
use std::hash::{BuildHasher, RandomState};

/// The number of shares of a pool: four times the maximum number of namespaces. A randomly seeded hash assigns each namespace
/// to a share, so that few namespaces have the same one.
const SHARES: usize = 4_096;

/// A pool of which each namespace leaves a part to others.
///
/// A namespace that has used up its share waits until its own reservations end. Meanwhile, others can use the rest. Its
/// next reservation then waits behind those of others.
#[derive(Debug)]
pub(crate) struct FairPool {
    pool: MemoryPool,
    /// What each namespace may use.
    shares: Vec<MemoryPool>,
    /// What belongs to no namespace may use this.
    of_cluster: MemoryPool,
    hasher: RandomState,
}

/// The part of a pool that one namespace may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolShare<'p> {
    share: &'p MemoryPool,
    pool: &'p MemoryPool,
}

/// Memory of a share and of its pool, reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct SharedReservation {
    _share: Reservation,
    _pool: Reservation,
}

impl FairPool {
    /// Shares of `pool`, each of which leaves `left_bytes` to others. A share has at least that much itself, or the whole pool
    /// if that has less.
    pub(crate) fn new(pool: &MemoryPool, left_bytes: usize) -> Self {
        let rest = pool.bytes_max().saturating_sub(left_bytes);
        let bytes_max = rest.max(left_bytes).min(pool.bytes_max());
        let share = || MemoryPool::new(bytes_max);
        Self {
            pool: pool.clone(),
            shares: std::iter::repeat_with(share).take(SHARES).collect(),
            of_cluster: share(),
            hasher: RandomState::new(),
        }
    }

    /// The share of a namespace.
    pub(crate) fn share_of(&self, namespace: &Namespace) -> PoolShare<'_> {
        let shares = self.shares.len() as u64;
        let index = self.hasher.hash_one(namespace) % shares;
        let index = usize::try_from(index).expect("it is less than their number");
        self.with(&self.shares[index])
    }

    /// The share of what belongs to no namespace.
    pub(crate) fn share_of_cluster(&self) -> PoolShare<'_> {
        self.with(&self.of_cluster)
    }

    fn with<'p>(&'p self, share: &'p MemoryPool) -> PoolShare<'p> {
        let pool = &self.pool;
        PoolShare { share, pool }
    }
}

impl PoolShare<'_> {
    /// The size of the share. In bytes.
    pub(crate) fn bytes_max(self) -> usize {
        self.share.bytes_max()
    }

    /// Reserves `bytes` as soon as they are free, in the order of the callers of this share; `None` if the pool is smaller than
    /// that. A reservation that is larger than the share needs all of the share.
    pub(crate) async fn reserve(self, bytes: usize) -> Option<SharedReservation> {
        Some(SharedReservation {
            _share: self.share.reserve(bytes.min(self.bytes_max())).await?,
            _pool: self.pool.reserve(bytes).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    /// Two namespaces with different shares.
    fn namespaces(fair: &FairPool) -> [Namespace; 2] {
        let named = |number: u32| Namespace::new(format!("n-{number}")).expect("a name");
        let noisy = named(0);
        let has_another_share = |other: &Namespace| {
            !std::ptr::eq(fair.share_of(&noisy).share, fair.share_of(other).share)
        };
        let quiet = (1..).map(named).find(has_another_share);
        [noisy.clone(), quiet.expect("not all have the same share")]
    }

    #[tokio::test]
    async fn a_namespace_that_uses_its_whole_share_does_not_block_others() {
        let pool = MemoryPool::new(8);
        let fair = FairPool::new(&pool, 2);
        let namespaces = namespaces(&fair);
        let [noisy, quiet] = namespaces.each_ref().map(|one| fair.share_of(one));
        let held: Vec<_> = (0..3).map(|_| noisy.reserve(2).now_or_never()).collect();
        assert!(held.iter().flatten().all(Option::is_some));
        let mut waiting: Vec<_> = (0..9).map(|_| Box::pin(noisy.reserve(2))).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        for share in [quiet, fair.share_of_cluster()] {
            let reserved = share.reserve(2).now_or_never().flatten();
            assert!(reserved.is_some(), "it does not wait for the noisy one");
        }
        let filled = quiet.reserve(2).now_or_never().flatten();
        assert!(filled.is_some() && fair.share_of_cluster().reserve(2).now_or_never().is_none());
        drop(filled);
        drop((held, waiting));
        assert_eq!(pool.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn namespaces_take_turns_if_their_reservations_do_not_fit_at_the_same_time() {
        let pool = MemoryPool::new(8);
        let fair = FairPool::new(&pool, 2);
        let namespaces = namespaces(&fair);
        let [noisy, quiet] = namespaces.each_ref().map(|one| fair.share_of(one));
        // Each is larger than the share.
        let held = noisy.reserve(7).now_or_never().flatten();
        assert!(held.is_some());
        let mut waiting: Vec<_> = (0..9).map(|_| Box::pin(noisy.reserve(7))).collect();
        let mut next = Box::pin(quiet.reserve(7));
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        assert!(next.as_mut().now_or_never().is_none());
        drop(held);
        assert!(waiting[0].as_mut().now_or_never().is_none());
        let taken = next.as_mut().now_or_never().flatten();
        assert!(taken.is_some(), "it is its turn");
        drop(taken);
        assert!(waiting[0].as_mut().now_or_never().flatten().is_some());
        assert!(quiet.reserve(9).await.is_none(), "it never fits");
    }

    #[test]
    fn a_share_has_room_for_the_largest_reservation() {
        let fair = FairPool::new(&MemoryPool::new(8), 6);
        assert_eq!(fair.share_of_cluster().bytes_max(), 6);
        let large = FairPool::new(&MemoryPool::new(24), 6);
        assert_eq!(large.share_of_cluster().bytes_max(), 18);
        let small = FairPool::new(&MemoryPool::new(4), 6);
        assert_eq!(small.share_of_cluster().bytes_max(), 4);
    }
}
