//! Remembers the tokens that a node has verified: a signature costs more than the rest of a call.

use crate::limits::{VERIFIED_TOKENS_BYTES_MAX, VERIFIED_TOKENS_MAX};
use flotilla_engine::BoundActor;
use lru::LruCache;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

const COUNT_MAX: NonZeroUsize = NonZeroUsize::new(VERIFIED_TOKENS_MAX).expect("it is above 0");

/// The most recently used tokens, by their digests. Bounded in count and in bytes.
pub(super) struct VerifiedTokens {
    // A std lock and not tokio's because it is never held across an await.
    tokens: Mutex<Tokens>,
}

struct Tokens {
    by_digest: LruCache<[u8; 32], VerifiedToken>,
    bytes: usize,
}

/// What a token proves, as long as its issuer has the keys that have verified it.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) actor: BoundActor,
    /// The position of its issuer.
    pub(super) issuer: usize,
    /// The generation of the issuer's keys.
    pub(super) generation: u64,
}

impl VerifiedToken {
    /// About the memory that it takes.
    fn bytes(&self) -> usize {
        let name = 2 * size_of::<String>();
        let names = self
            .actor
            .subjects()
            .map(|subject| subject.to_string().len() + name);
        size_of::<Self>() + names.sum::<usize>()
    }
}

impl VerifiedTokens {
    pub(super) fn new() -> Self {
        Self {
            tokens: Mutex::new(Tokens {
                by_digest: LruCache::sparse(COUNT_MAX),
                bytes: 0,
            }),
        }
    }

    pub(super) fn digest(token: &str) -> [u8; 32] {
        Sha256::digest(token.as_bytes()).into()
    }

    pub(super) fn get(&self, digest: &[u8; 32]) -> Option<VerifiedToken> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.by_digest.get(digest).cloned()
    }

    pub(super) fn put(&self, digest: [u8; 32], token: VerifiedToken) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.bytes += token.bytes();
        let pushed_out = tokens.by_digest.push(digest, token);
        tokens.bytes -= pushed_out.map_or(0, |(_, token)| token.bytes());
        while tokens.bytes > VERIFIED_TOKENS_BYTES_MAX
            && let Some((_, oldest)) = tokens.by_digest.pop_lru()
        {
            tokens.bytes -= oldest.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::BindingSubject;

    fn token(groups: usize) -> VerifiedToken {
        let subject = |text: String| BindingSubject::parse(&text).expect("a subject");
        let group = format!("oidc:corp:group:{}", "g".repeat(200));
        VerifiedToken {
            actor: BoundActor {
                subject: subject("oidc:corp:sub:ada".to_owned()),
                groups: vec![subject(group); groups],
                ends_at_ms: 1,
            },
            issuer: 0,
            generation: 1,
        }
    }

    fn number(number: usize) -> [u8; 32] {
        VerifiedTokens::digest(&number.to_string())
    }

    #[test]
    fn the_least_recently_used_tokens_are_forgotten() {
        let tokens = VerifiedTokens::new();
        let max = VERIFIED_TOKENS_MAX;
        for one in 0..=max {
            tokens.put(number(one), token(0));
            tokens.put(number(one), token(0));
        }
        assert!(tokens.get(&number(0)).is_none());
        assert!(tokens.get(&number(1)).is_some() && tokens.get(&number(max)).is_some());
    }

    #[test]
    fn large_tokens_are_bounded_in_bytes() {
        let tokens = VerifiedTokens::new();
        let max = VERIFIED_TOKENS_BYTES_MAX / token(20).bytes();
        assert!(max < VERIFIED_TOKENS_MAX);
        for one in 0..=max {
            tokens.put(number(one), token(20));
        }
        assert!(tokens.get(&number(0)).is_none() && tokens.get(&number(1)).is_some());
    }
}
