//! Recently finished tasks, so that a repeated assignment is recognized.

use std::collections::BTreeSet;

/// The minimum number of remembered tokens: as many messages as a leader queues for one worker.
const TOKENS_MIN: usize = 4_096;

/// The tokens that a worker finished last. A token names one attempt, which never runs again once
/// it is over; but a leader may still have a second assignment of it in flight.
///
/// Two generations bound the memory: when the newer one is full, it replaces the older one.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    young: BTreeSet<T>,
    old: BTreeSet<T>,
}

impl<T: Ord> Recent<T> {
    /// Remembers nothing.
    pub(crate) fn new() -> Self {
        Self {
            young: BTreeSet::new(),
            old: BTreeSet::new(),
        }
    }

    /// Remembers a token.
    pub(crate) fn insert(&mut self, token: T) {
        if self.young.len() >= TOKENS_MIN {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token);
    }

    /// Whether the token is remembered.
    pub(crate) fn contains(&self, token: &T) -> bool {
        self.young.contains(token) || self.old.contains(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tokens_are_known_and_the_first_ones_are_forgotten() {
        let mut recent = Recent::new();
        let tokens: Vec<usize> = (0..3 * TOKENS_MIN).collect();
        for token in &tokens {
            recent.insert(*token);
        }
        let (first, last) = tokens.split_at(2 * TOKENS_MIN);
        assert!(last.iter().all(|token| recent.contains(token)));
        assert!(
            first[..TOKENS_MIN]
                .iter()
                .all(|token| !recent.contains(token))
        );
    }
}
