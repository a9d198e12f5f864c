//! Callers with the tokens of identity providers (X12, X13).
//!
//! `flotilla-oidc` verifies tokens. [`Issuers`] has the issuers of a node with their keys, which [`issuer_keys`] keeps fresh
//! and [`fetch`] gets from files and URLs. What a token proves becomes the actor of a call.

mod address;
mod fetch;
mod issuer_keys;
mod key_url;
mod verified_tokens;

#[cfg(test)]
mod tests;

pub use key_url::KeyUrlInvalid;

pub(crate) use key_url::KeyUrl;

use self::fetch::{KeyFetchError, KeyFetcher};
use self::issuer_keys::{IssuerKeys, Refetch};
use self::verified_tokens::{VerifiedToken, VerifiedTokens};
use crate::config::OidcIssuer;
use crate::errors::{Refusal, ServerCode};
use crate::limits::BAD_TOKEN_LOG_INTERVAL;
use flotilla_engine::ids::{IssuerName, SubjectValue};
use flotilla_engine::{AccessRejection, BindingSubject, BoundActor};
use flotilla_oidc::{Proof, Rules, TokenFault, TokenInvalid, UnverifiedToken};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How a token begins: it is an encoded JSON object.
const TOKEN_PREFIX: &str = "eyJ";

/// The issuers of a node, and the tokens that they have made.
pub(crate) struct Issuers {
    issuers: Vec<Issuer>,
    verified: VerifiedTokens,
    /// When a bad token was last logged.
    logged_at: Mutex<Option<Instant>>,
}

struct Issuer {
    name: IssuerName,
    rules: Rules,
    keys: IssuerKeys,
    results: [AtomicU64; RESULTS.len()],
}

/// The results of checking a token that was not remembered, as metrics name them.
const RESULTS: [&str; 5] = ["accepted", "malformed", "expired", "unknown", "unavailable"];

/// The keys of an issuer cannot be used at the start of a node.
#[derive(Debug, thiserror::Error)]
#[error("expected usable keys of issuer `{name}`, but they are not: {found}")]
pub struct OidcKeysInvalid {
    /// The issuer.
    name: String,
    /// What is wrong with the keys.
    found: String,
}

/// Figures of an issuer, for metrics.
pub(crate) struct IssuerFigures<'i> {
    pub(crate) name: &'i str,
    /// Checked tokens by result.
    pub(crate) tokens: Vec<(&'static str, u64)>,
    /// Fetches by result.
    pub(crate) fetches: [(&'static str, u64); 2],
    /// How old its keys are; `None` without any.
    pub(crate) keys_age: Option<Duration>,
}

/// A token that a caller shows.
pub(crate) struct ShownToken<'t> {
    text: &'t str,
    digest: [u8; 32],
}

impl<'t> ShownToken<'t> {
    /// The credential, if it has the form of an issuer's token.
    pub(crate) fn of(credential: &'t str) -> Option<Self> {
        credential.starts_with(TOKEN_PREFIX).then(|| Self {
            text: credential,
            digest: VerifiedTokens::digest(credential),
        })
    }
}

impl Issuers {
    /// The issuers of a configuration. Keys in files are read.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(crate) async fn load(configs: &[OidcIssuer]) -> Result<Self, OidcKeysInvalid> {
        let mut issuers = Vec::new();
        for config in configs {
            let invalid = |error: KeyFetchError| OidcKeysInvalid {
                name: config.name.clone(),
                found: error.to_string(),
            };
            let validated = "the configuration was validated";
            let name = config.issuer_name().expect(validated);
            let source = config.source().expect(validated);
            let keys = IssuerKeys::new(KeyFetcher::new(config, source).map_err(invalid)?);
            keys.load_file().await.map_err(invalid)?;
            issuers.push(Issuer {
                name,
                rules: config.rules(),
                keys,
                results: Default::default(),
            });
        }
        Ok(Self {
            issuers,
            verified: VerifiedTokens::new(),
            logged_at: Mutex::default(),
        })
    }

    /// Keeps the keys of all issuers fresh until the node stops.
    pub(crate) fn start(self: &Arc<Self>, shutdown: &CancellationToken) -> Vec<JoinHandle<()>> {
        let start = |position| {
            let (issuers, shutdown) = (Arc::clone(self), shutdown.clone());
            tokio::spawn(async move {
                let Issuer { name, keys, .. } = &issuers.issuers[position];
                keys.keep_fresh(name.as_str(), shutdown).await;
            })
        };
        (0..self.issuers.len()).map(start).collect()
    }

    /// What a token proves that was verified before with the current keys, if it has not expired.
    pub(crate) fn remembered(&self, token: &ShownToken<'_>, now_ms: u64) -> Option<BoundActor> {
        let verified = self.verified.get(&token.digest)?;
        let current = self.issuers[verified.issuer].keys.current()?;
        let is_valid =
            current.generation == verified.generation && now_ms < verified.actor.ends_at_ms;
        is_valid.then_some(verified.actor)
    }

    /// What a token proves at `now_ms`. If its key is unknown, the keys of its issuer are fetched once more.
    ///
    /// # Errors
    /// The token is bad, or the keys of its issuer could not be fetched.
    pub(crate) async fn verify(
        &self,
        token: &ShownToken<'_>,
        now_ms: u64,
        deadline: Instant,
    ) -> Result<BoundActor, Refusal> {
        let unverified = UnverifiedToken::parse(token.text);
        let unverified = unverified.map_err(|invalid| self.refuse(None, &invalid))?;
        let mut issuers = self.issuers.iter();
        let position = issuers.position(|issuer| issuer.rules.issuer == unverified.issuer());
        let Some(position) = position else {
            self.log(
                None,
                "iss",
                "expected `iss` to be a configured issuer, but it is another",
            );
            return Err(AccessRejection::CredentialUnknown.into());
        };
        let issuer = &self.issuers[position];
        let mut refetched = Refetch::Done;
        let mut current = issuer.keys.current();
        if current.is_none() {
            refetched = issuer.keys.refetch(deadline).await;
            current = issuer.keys.current();
        }
        let mut verified = issuer.verify(&unverified, current.as_ref(), now_ms);
        if is_of_unknown_key(&verified) {
            refetched = issuer.keys.refetch(deadline).await;
            current = issuer.keys.current();
            verified = issuer.verify(&unverified, current.as_ref(), now_ms);
        }
        match (verified, current) {
            (Some(Ok(proof)), Some(current)) => {
                issuer.count(0);
                let actor = issuer.actor(proof)?;
                let verified = VerifiedToken {
                    actor: actor.clone(),
                    issuer: position,
                    generation: current.generation,
                };
                self.verified.put(token.digest, verified);
                Ok(actor)
            }
            (Some(Err(invalid)), _)
                if invalid.fault != TokenFault::KeyUnknown || refetched == Refetch::Done =>
            {
                Err(self.refuse(Some(issuer), &invalid))
            }
            // Its keys were never fetched, or the key of the token may be newer than they are.
            _ => {
                issuer.count(4);
                Err(issuer.unavailable())
            }
        }
    }

    /// Logs and counts a bad token, and returns how it is refused.
    fn refuse(&self, issuer: Option<&Issuer>, invalid: &TokenInvalid) -> Refusal {
        self.log(issuer, &invalid.claim, &invalid.to_string());
        let (result, refusal) = match invalid.fault {
            TokenFault::Malformed => (1, malformed(invalid)),
            TokenFault::Expired => {
                let text = "expected a token that is valid, but it has expired";
                let refusal = Refusal::new(flotilla_engine::RejectionCode::CredentialExpired, text);
                (2, refusal)
            }
            TokenFault::Unknown | TokenFault::KeyUnknown => {
                (3, AccessRejection::CredentialUnknown.into())
            }
        };
        if let Some(issuer) = issuer {
            issuer.count(result);
        }
        refusal
    }

    /// Logs a bad token, unless one was logged a moment ago.
    fn log(&self, issuer: Option<&Issuer>, claim: &str, text: &str) {
        let mut logged_at = self
            .logged_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if logged_at.is_some_and(|last| now - last < BAD_TOKEN_LOG_INTERVAL) {
            return;
        }
        *logged_at = Some(now);
        let issuer = issuer.map_or("", |issuer| issuer.name.as_str());
        tracing::warn!(
            issuer,
            claim,
            error = text,
            "the token of a caller is refused"
        );
    }

    /// Figures of each issuer.
    pub(crate) fn figures(&self) -> impl Iterator<Item = IssuerFigures<'_>> {
        self.issuers.iter().map(|issuer| {
            let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let results = RESULTS.into_iter().zip(&issuer.results);
            let fetches = &issuer.keys.fetches;
            IssuerFigures {
                name: issuer.name.as_str(),
                tokens: results
                    .map(|(result, counter)| (result, count(counter)))
                    .collect(),
                fetches: [
                    ("succeeded", count(&fetches.succeeded)),
                    ("failed", count(&fetches.failed)),
                ],
                keys_age: issuer.keys.age(),
            }
        })
    }
}

impl Issuer {
    /// Verifies a token with the keys, if there are any.
    fn verify(
        &self,
        token: &UnverifiedToken<'_>,
        current: Option<&issuer_keys::CurrentKeys>,
        now_ms: u64,
    ) -> Option<Result<Proof, TokenInvalid>> {
        current.map(|current| token.verify(&self.rules, &current.keys, now_ms))
    }

    fn count(&self, result: usize) {
        self.results[result].fetch_add(1, Ordering::Relaxed);
    }

    /// The actor of calls with a token that proves this.
    fn actor(&self, proof: Proof) -> Result<BoundActor, Refusal> {
        let value = |text: String| {
            SubjectValue::new(text).map_err(|invalid| {
                Refusal::new(ServerCode::CredentialMalformed, invalid.to_string())
            })
        };
        let group = |text| Ok(BindingSubject::OidcGroup(self.name.clone(), value(text)?));
        Ok(BoundActor {
            subject: BindingSubject::OidcSub(self.name.clone(), value(proof.subject)?),
            groups: proof
                .groups
                .into_iter()
                .map(group)
                .collect::<Result<_, Refusal>>()?,
            ends_at_ms: proof.ends_at_ms,
        })
    }

    fn unavailable(&self) -> Refusal {
        let text = format!(
            "expected the keys of issuer `{}`, but this node could not fetch them",
            self.name
        );
        Refusal::new(ServerCode::IdentityUnavailable, text)
            .with_hint("send the request again, or send it to another node; the log of the node says why the keys are missing")
    }
}

/// Whether the issuer may have a newer key for the token.
fn is_of_unknown_key(verified: &Option<Result<Proof, TokenInvalid>>) -> bool {
    matches!(verified, Some(Err(invalid)) if invalid.fault == TokenFault::KeyUnknown)
}

fn malformed(invalid: &TokenInvalid) -> Refusal {
    Refusal::new(ServerCode::CredentialMalformed, invalid.to_string())
        .with_hint("get a new token from the identity provider; administrators find more in the log of the node")
}
