//! The budget of hedges: reads that are sent to a second node before the first one has responded.
//!
//! Hedges hide one slow node. Without a bound, they would double the load of a cluster in which all
//! nodes are slow. So each read earns a tenth of a hedge, and unused hedges add up to a few.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a hedge costs, in the number of reads that earn it.
const READS_PER_HEDGE: u32 = 10;
/// The hedges that can be saved up; a new client has as many.
const SAVED_MAX: u32 = 10;

/// The budget of hedges.
#[derive(Debug)]
pub(crate) struct Hedges {
    /// Reads that no hedge was paid with.
    reads: AtomicU32,
}

impl Default for Hedges {
    fn default() -> Self {
        Self {
            reads: AtomicU32::new(SAVED_MAX * READS_PER_HEDGE),
        }
    }
}

impl Hedges {
    /// Records a read.
    pub(crate) fn earn(&self) {
        let earned = |reads: u32| (reads < SAVED_MAX * READS_PER_HEDGE).then_some(reads + 1);
        // It fails if the budget is full.
        let _ = self
            .reads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, earned);
    }

    /// Whether the budget has room for a hedge, which is then spent.
    pub(crate) fn spend(&self) -> bool {
        let spent = |reads: u32| reads.checked_sub(READS_PER_HEDGE);
        let spent = self
            .reads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
        spent.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_in_ten_may_be_hedged_beyond_a_few() {
        let hedges = Hedges::default();
        for _ in 0..SAVED_MAX {
            assert!(hedges.spend());
        }
        let mut spent = 0;
        for _ in 0..1_000 {
            hedges.earn();
            spent += u32::from(hedges.spend());
        }
        assert_eq!(spent, 1_000 / READS_PER_HEDGE);
        for _ in 0..10_000 {
            hedges.earn();
        }
        let saved = (0..100).filter(|_| hedges.spend()).count();
        assert_eq!(saved, SAVED_MAX as usize);
    }
}
