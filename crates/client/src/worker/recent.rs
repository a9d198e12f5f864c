//! Recently finished tasks, so that a repeated assignment is recognized.

use std::collections::BTreeSet;

/// The minimum number of remembered tokens: as many messages as a leader queues for one worker.
const TOKENS_MIN: usize = 4_096;

/// The tokens that a worker finished last. A token names one attempt, which never runs again once
/// it is over; but a leader may still have a second assignment of it in flight.
///
/// Two generations bound the memory: when the newer one is full, it replaces the older one.
#[derive(Debug, Default)]
pub(super) struct Recent {
    young: BTreeSet<String>,
    old: BTreeSet<String>,
}

impl Recent {
    /// Remembers a token.
    pub(super) fn insert(&mut self, token: String) {
        if self.young.len() >= TOKENS_MIN {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token);
    }

    /// Whether the token is remembered.
    pub(super) fn contains(&self, token: &str) -> bool {
        self.young.contains(token) || self.old.contains(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tokens_are_known_and_the_first_ones_are_forgotten() {
        let mut recent = Recent::default();
        let tokens: Vec<String> = (0..3 * TOKENS_MIN)
            .map(|number| number.to_string())
            .collect();
        for token in &tokens {
            recent.insert(token.clone());
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
