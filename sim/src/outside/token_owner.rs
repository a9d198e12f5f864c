//! The owner of tokens: hands a token to callers that write with it, and revokes the token while they write.

use super::caller::Caller;
use super::workload;
use crate::record::Outcome;
use crate::time::Time;
use flotilla_engine::ids::{KvKey, TokenId};
use flotilla_engine::{Actor, SetCondition};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How many callers write with one token.
const HOLDERS: u64 = 2;

/// The owner of tokens.
pub(crate) struct TokenOwner {
    pub(crate) caller: Caller,
    pub(crate) time: Time,
    /// When it stops creating tokens, in milliseconds.
    pub(crate) until_ms: u64,
}

/// What the keys of tokens begin with that their owner writes once they are revoked.
const REVOKED: &str = "revoked-";

/// The key that the holders of a token write.
fn written_key(number: &str) -> KvKey {
    KvKey::new(format!("token-{number}")).expect("a valid key")
}

/// The key that the owner of a token writes once the token is revoked.
fn revoked_key(number: &str) -> KvKey {
    KvKey::new(format!("{REVOKED}{number}")).expect("a valid key")
}

/// The key that the holders of a token write, by the key that its owner writes once it is revoked; `None` for another key.
pub(crate) fn written_key_of(revoked: &KvKey) -> Option<KvKey> {
    revoked.as_str().strip_prefix(REVOKED).map(written_key)
}

impl TokenOwner {
    /// Creates and revokes one token after the other, until the time is over.
    pub(crate) async fn run(mut self) {
        let mut number = 0_u64;
        while self.time.now_ms() < self.until_ms {
            number += 1;
            self.create_and_revoke(&number.to_string()).await;
            self.caller.pause(0..500).await;
        }
    }

    /// The life of one token.
    async fn create_and_revoke(&mut self, number: &str) {
        let secret = [(); 4].map(|()| self.caller.random.draw());
        let (token, create) = workload::create_token(secret);
        let create = self.caller.command(create);
        if !matches!(self.caller.insist(create).await, Outcome::Acknowledged(_)) {
            return;
        }
        let stop = CancellationToken::new();
        for _ in 0..HOLDERS {
            let holder = self.caller.acting_for(Actor::Token(token));
            tokio::spawn(hold(holder, written_key(number), stop.clone()));
        }
        self.caller.pause(300..2_000).await;
        self.revoke(number, token).await;
        // The holders do not know it yet.
        self.caller.pause(100..1_000).await;
        stop.cancel();
    }

    /// Revokes the token, and then writes: no write with the token may have a later version.
    async fn revoke(&mut self, number: &str, token: TokenId) {
        let revoke = self.caller.command(workload::revoke_token(token));
        if !matches!(self.caller.insist(revoke).await, Outcome::Acknowledged(_)) {
            return;
        }
        let set = workload::set(&revoked_key(number), "", SetCondition::Always);
        let set = self.caller.command(set);
        self.caller.insist(set).await;
    }
}

/// Writes with a token until it is stopped.
async fn hold(mut caller: Caller, key: KvKey, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let value = caller.random.draw().to_string();
        let set = workload::set(&key, &value, SetCondition::Always);
        let set = caller.command(set);
        caller.submit(set).await;
        let rest_ms = caller.random.within(0..100);
        tokio::time::sleep(Duration::from_millis(rest_ms)).await;
    }
}
