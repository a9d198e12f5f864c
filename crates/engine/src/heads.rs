//! Queue heads: where each queue of ready tasks begins (design rule 4).
//!
//! Taken rows leave tombstones at the front of a queue, and a seek from the front would walk them all. A head is a key
//! before which the queue has no stored row. It is derived from the store, so losing it costs one scan.

use crate::limits::QUEUE_HEADS_MAX;
use crate::store::KeyRange;
use crate::tables::{Ready, Table};
use std::collections::BTreeMap;

/// The length of a ready row's key after its queue: the priority and the action run's number.
const SUFFIX_BYTES: usize = size_of::<u8>() + size_of::<u64>();

/// The known queue heads, by key prefix.
#[derive(Default)]
pub(crate) struct QueueHeads {
    heads: BTreeMap<Vec<u8>, Head>,
}

enum Head {
    /// The queue has no stored row.
    Empty,
    /// The queue has no stored row before this key.
    From(Vec<u8>),
}

impl QueueHeads {
    /// The part of the queue's range `whole` that may hold stored rows; `None` if there are none.
    pub(crate) fn stored_range(&self, whole: &KeyRange) -> Option<KeyRange> {
        match self.heads.get(&whole.from) {
            None => Some(whole.clone()),
            Some(Head::Empty) => None,
            Some(Head::From(head)) => Some(KeyRange {
                from: head.clone(),
                to: whole.to.clone(),
            }),
        }
    }

    /// Records the first stored key that a scan of the queue found.
    pub(crate) fn found(&mut self, prefix: Vec<u8>, first: Option<Vec<u8>>) {
        if self.heads.len() >= QUEUE_HEADS_MAX {
            self.heads.clear();
        }
        self.heads
            .insert(prefix, first.map_or(Head::Empty, Head::From));
    }

    /// Updates the heads for a row that is about to be stored.
    pub(crate) fn follow(&mut self, key: &[u8]) {
        if key.first() != Some(&Ready::NUMBER) {
            return;
        }
        let Some((prefix, _)) = key.split_at_checked(key.len() - SUFFIX_BYTES) else {
            return;
        };
        let Some(head) = self.heads.get_mut(prefix) else {
            return;
        };
        match head {
            Head::From(first) if first.as_slice() <= key => {}
            Head::From(_) | Head::Empty => *head = Head::From(key.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> Vec<u8> {
        let mut key = vec![Ready::NUMBER, b'n', 0, b'a', 0];
        key.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, last]);
        key
    }

    #[test]
    fn a_head_moves_up_with_what_is_found_and_down_with_what_is_stored() {
        let whole = KeyRange::prefix(&key(0)[..5]);
        let mut heads = QueueHeads::default();
        let from = |heads: &QueueHeads| heads.stored_range(&whole).map(|range| range.from);
        assert_eq!(from(&heads), Some(whole.from.clone()));
        heads.found(whole.from.clone(), Some(key(7)));
        assert_eq!(from(&heads), Some(key(7)));
        heads.follow(&key(9));
        assert_eq!(from(&heads), Some(key(7)));
        heads.follow(&key(3));
        assert_eq!(from(&heads), Some(key(3)));
        heads.found(whole.from.clone(), None);
        assert_eq!(from(&heads), None);
        heads.follow(&key(5));
        assert_eq!(from(&heads), Some(key(5)));
    }
}
