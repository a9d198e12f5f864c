//! Blocks of action runs, for indexes by action run.
//!
//! Action runs are numbered in the order of their creation, so those that the commands of one entry add to an index are
//! mostly in the same block: they share a row.

use super::Key;
use crate::ids::ActionRunNumber;
use serde::{Deserialize, Serialize};

/// The number of action runs in a block: a bit of a word for each.
const BLOCK_LENGTH: u64 = 64;

/// 64 consecutive numbers of action runs; the first one is a multiple of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionRunBlock(u64);

impl ActionRunBlock {
    /// The block of an action run.
    #[must_use]
    pub fn of(action_run: ActionRunNumber) -> Self {
        Self(action_run.0 / BLOCK_LENGTH)
    }
}

impl Key for ActionRunBlock {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u64::decode(bytes).map(Self)
    }
}

/// Some of the action runs of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRunSet(u64);

impl ActionRunSet {
    /// The set that only contains `action_run`.
    #[must_use]
    pub fn of(action_run: ActionRunNumber) -> Self {
        Self(bit(action_run))
    }

    /// Adds an action run of the block.
    pub(crate) fn insert(&mut self, action_run: ActionRunNumber) {
        self.0 |= bit(action_run);
    }

    /// Removes an action run of the block, if it is in the set.
    pub(crate) fn remove(&mut self, action_run: ActionRunNumber) {
        self.0 &= !bit(action_run);
    }

    /// Whether it contains no action run.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The action runs in the set, which is one of `block`, in order.
    pub fn of_block(
        self,
        block: ActionRunBlock,
    ) -> impl DoubleEndedIterator<Item = ActionRunNumber> {
        let first = block.0.saturating_mul(BLOCK_LENGTH);
        let numbers = (0..BLOCK_LENGTH).map(move |position| first.saturating_add(position));
        let numbers = numbers.map(ActionRunNumber);
        numbers.filter(move |number| self.0 & bit(*number) != 0)
    }
}

fn bit(action_run: ActionRunNumber) -> u64 {
    1 << (action_run.0 % BLOCK_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_what_was_added_and_not_removed() {
        let numbers = [64, 65, 100, 127].map(ActionRunNumber);
        let block = ActionRunBlock::of(numbers[0]);
        let mut set = ActionRunSet::of(numbers[0]);
        for number in numbers {
            assert_eq!(ActionRunBlock::of(number), block);
            set.insert(number);
        }
        assert!(set.of_block(block).eq(numbers));
        set.remove(numbers[1]);
        set.remove(numbers[1]);
        assert!(
            set.of_block(block)
                .rev()
                .eq([127, 100, 64].map(ActionRunNumber))
        );
        for number in numbers {
            assert!(!set.is_empty());
            set.remove(number);
        }
        assert!(set.is_empty());
    }

    #[test]
    fn a_damaged_block_has_no_number_that_overflows() {
        let last = ActionRunBlock::decode(&mut [0xff; 8].as_slice()).expect("eight bytes");
        let set = ActionRunSet(u64::MAX);
        assert!(set.of_block(last).all(|number| number.0 == u64::MAX));
    }
}
