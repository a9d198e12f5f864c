//! The owner of credentials: gives callers a token or binds their subject, and takes their rights back while they write.

use super::caller::Caller;
use super::workload;
use crate::record::Outcome;
use crate::time::Time;
use flotilla_engine::ids::{KvKey, TokenId};
use flotilla_engine::{Actor, BindingSubject, Body, BoundActor, SetCondition};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How many callers write with one credential.
const HOLDERS: u64 = 2;

/// The owner of credentials.
pub(crate) struct CredentialOwner {
    pub(crate) caller: Caller,
    pub(crate) time: Time,
    /// When it stops creating credentials, in milliseconds.
    pub(crate) until_ms: u64,
}

/// A credential with which callers write.
enum Credential {
    Token(TokenId),
    /// A subject that is unbound in the end.
    Unbound(BindingSubject),
    /// A subject that is blocked in the end.
    Blocked(BindingSubject),
}

/// What the keys of credentials begin with that their owner writes once they have no rights.
const ENDED: &str = "ended-";

/// The key that the holders of a credential write.
fn written_key(number: &str) -> KvKey {
    KvKey::new(format!("credential-{number}")).expect("a valid key")
}

/// The key that the owner of a credential writes once it has no rights.
fn ended_key(number: &str) -> KvKey {
    KvKey::new(format!("{ENDED}{number}")).expect("a valid key")
}

/// The key that the holders of a credential write, by the key that its owner writes once it has no rights; `None` for another
/// key.
pub(crate) fn written_key_of(ended: &KvKey) -> Option<KvKey> {
    ended.as_str().strip_prefix(ENDED).map(written_key)
}

impl Credential {
    /// One with rights, and the command that gives it these.
    fn new(caller: &mut Caller, number: u64) -> (Self, Body) {
        if number % 3 == 1 {
            let secret = [(); 4].map(|()| caller.random.draw());
            let (token, create) = workload::create_token(secret);
            return (Self::Token(token), create);
        }
        let subject = BindingSubject::parse(&format!("cert:dns:writer-{number}"));
        let subject = subject.expect("a valid subject");
        let bind = workload::bind_subject(&subject);
        match number % 3 {
            2 => (Self::Unbound(subject), bind),
            _ => (Self::Blocked(subject), bind),
        }
    }

    /// A caller that shows it.
    fn actor(&self) -> Actor {
        match self {
            Self::Token(token) => Actor::Token(*token),
            Self::Unbound(subject) | Self::Blocked(subject) => Actor::Bound(BoundActor {
                subject: subject.clone(),
                groups: Vec::new(),
                ends_at_ms: u64::MAX,
            }),
        }
    }

    /// The command that takes its rights back.
    fn end(&self) -> Body {
        match self {
            Self::Token(token) => workload::revoke_token(*token),
            Self::Unbound(subject) => workload::unbind_subject(subject),
            Self::Blocked(subject) => workload::block_subject(subject),
        }
    }
}

impl CredentialOwner {
    /// Creates and ends one credential after the other, until the time is over.
    pub(crate) async fn run(mut self) {
        let mut number = 0_u64;
        while self.time.now_ms() < self.until_ms {
            number += 1;
            self.create_and_end(number).await;
            self.caller.pause(0..500).await;
        }
    }

    /// The life of one credential.
    async fn create_and_end(&mut self, number: u64) {
        let (credential, create) = Credential::new(&mut self.caller, number);
        let create = self.caller.command(create);
        if !matches!(self.caller.insist(create).await, Outcome::Acknowledged(_)) {
            return;
        }
        let number = number.to_string();
        let stop = CancellationToken::new();
        for _ in 0..HOLDERS {
            let holder = self.caller.acting_for(credential.actor());
            tokio::spawn(hold(holder, written_key(&number), stop.clone()));
        }
        self.caller.pause(300..2_000).await;
        self.end(&number, &credential).await;
        // The holders do not know it yet.
        self.caller.pause(100..1_000).await;
        stop.cancel();
    }

    /// Takes the rights back, and then writes: no write with the credential may have a later version.
    async fn end(&mut self, number: &str, credential: &Credential) {
        let end = self.caller.command(credential.end());
        if !matches!(self.caller.insist(end).await, Outcome::Acknowledged(_)) {
            return;
        }
        let set = workload::set(&ended_key(number), "", SetCondition::Always);
        let set = self.caller.command(set);
        self.caller.insist(set).await;
    }
}

/// Writes with a credential until it is stopped.
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
