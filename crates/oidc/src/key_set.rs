//! The public keys of an issuer: a JSON web key set (X12, X13).

use crate::public_key::{KeyParameters, PublicKey};
use crate::rules::SignatureAlgorithm;
use crate::token::{TokenFault, TokenInvalid};
use serde::Deserialize;
use serde_json::Value;

/// The size of a key set, in bytes.
pub const KEY_SET_BYTES_MAX: usize = 256 << 10;
/// The keys of a set.
pub const KEYS_MAX: usize = 64;

/// The keys of an issuer that verify signatures. Other keys are left out: those for encryption, shared secrets, RSA keys below
/// 2048 bits, unknown curves.
#[derive(Clone, Debug)]
pub struct KeySet {
    /// Invariant: not empty.
    keys: Vec<Key>,
}

/// Why a text is not a usable key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetInvalid {
    /// It is too long.
    #[error("expected a key set of at most {KEY_SET_BYTES_MAX} bytes, but it has {0}")]
    TooLarge(usize),
    /// It is something else.
    #[error("expected a JSON web key set, but it is something else: {0}")]
    Malformed(String),
    /// It has too many keys.
    #[error("expected at most {KEYS_MAX} keys, but there are {0}")]
    TooManyKeys(usize),
    /// None of its keys verifies signatures.
    #[error("expected a key that verifies signatures, but none of {0} does")]
    NoKey(usize),
}

#[derive(Deserialize)]
struct Members {
    keys: Vec<Value>,
}

/// A JSON web key.
#[derive(Deserialize)]
struct Jwk {
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    #[serde(flatten)]
    parameters: KeyParameters,
}

/// A key that verifies signatures.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// What tokens call it.
    id: Option<String>,
    /// The algorithms that it can be used with: the one that it names, or all that fit it.
    algorithms: Vec<SignatureAlgorithm>,
    pub(crate) public: PublicKey,
}

impl KeySet {
    /// Parses a key set.
    ///
    /// # Errors
    /// [`KeySetInvalid`] if it is not one, or has no usable key.
    pub fn parse(text: &[u8]) -> Result<Self, KeySetInvalid> {
        if text.len() > KEY_SET_BYTES_MAX {
            return Err(KeySetInvalid::TooLarge(text.len()));
        }
        let members: Members = serde_json::from_slice(text)
            .map_err(|error| KeySetInvalid::Malformed(error.to_string()))?;
        let count = members.keys.len();
        if count > KEYS_MAX {
            return Err(KeySetInvalid::TooManyKeys(count));
        }
        let keys: Vec<Key> = members.keys.into_iter().filter_map(Key::parse).collect();
        match keys.is_empty() {
            true => Err(KeySetInvalid::NoKey(count)),
            false => Ok(Self { keys }),
        }
    }

    /// The number of usable keys.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The key that verifies a token with this key id and algorithm.
    pub(crate) fn find(
        &self,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> Result<&Key, TokenInvalid> {
        let candidates: Vec<&Key> = match (id, &self.keys[..]) {
            // The only key needs no id.
            (_, [only @ Key { id: None, .. }]) | (None, [only]) => vec![only],
            (None, _) => {
                let text =
                    "expected `kid`, because its issuer has several keys, but it is not given";
                return Err(TokenInvalid::malformed("kid", text));
            }
            (Some(id), keys) => {
                let is_named = |key: &&Key| key.id.as_deref() == Some(id);
                keys.iter().filter(is_named).collect()
            }
        };
        if candidates.is_empty() {
            let text = "expected `kid` to name a key of its issuer, but no key has this id";
            return Err(TokenInvalid::new(TokenFault::KeyUnknown, "kid", text));
        }
        let mut candidates = candidates.into_iter();
        let fitting = candidates.find(|key| key.algorithms.contains(&algorithm));
        fitting.ok_or_else(|| {
            let text = "expected `alg` to fit the key, but it does not";
            TokenInvalid::new(TokenFault::Unknown, "alg", text)
        })
    }
}

impl Key {
    /// The key, if it is of a kind that verifies signatures.
    fn parse(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_for_signatures = jwk.usage.is_none_or(|usage| usage == "sig");
        let verifies = |operations: Vec<String>| operations.iter().any(|one| one == "verify");
        if !is_for_signatures || !jwk.key_ops.is_none_or(verifies) {
            return None;
        }
        let public = PublicKey::of(&jwk.parameters)?;
        let mut algorithms = public.algorithms().to_vec();
        if let Some(named) = jwk.alg {
            algorithms.retain(|algorithm| algorithm.name() == named);
        }
        (!algorithms.is_empty()).then_some(Self {
            id: jwk.kid,
            algorithms,
            public,
        })
    }

    /// Whether tokens name the key; otherwise, a token of the next key of the issuer looks like a forged one.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }
}
