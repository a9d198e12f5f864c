//! A token as it is shown, and its verification (X12).

use crate::claims::{self, Claims, Proof};
use crate::json::{Object, decode};
use crate::key_set::KeySet;
use crate::rules::{Rules, SignatureAlgorithm};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// It is not a token that any issuer should make.
    Malformed,
    /// It has expired.
    Expired,
    /// It is not one of this issuer for this audience.
    Unknown,
    /// Its key is unknown: the issuer may have a new one.
    KeyUnknown,
}

/// Why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TokenInvalid {
    /// What is wrong with it.
    pub fault: TokenFault,
    /// The claim, or the field of its header, that shows it; `signature`, or `token` for the whole.
    pub claim: Cow<'static, str>,
    text: String,
}

impl TokenInvalid {
    pub(crate) fn new(
        fault: TokenFault,
        claim: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            fault,
            claim: claim.into(),
            text: text.into(),
        }
    }

    pub(crate) fn malformed(claim: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self::new(TokenFault::Malformed, claim, text)
    }
}

/// A token whose signature was not verified: it proves nothing.
#[derive(Clone, Debug)]
pub struct UnverifiedToken<'t> {
    /// What is signed.
    message: &'t str,
    signature: Vec<u8>,
    algorithm: SignatureAlgorithm,
    key_id: Option<String>,
    claims: Claims,
}

/// Fields of a header that change what a token means. Readers that do not know them must not accept it.
const REFUSED_FIELDS: [&str; 4] = ["crit", "enc", "zip", "b64"];

impl<'t> UnverifiedToken<'t> {
    /// Reads the header of a token and its claims. The addresses of keys and the keys in the header are ignored.
    ///
    /// # Errors
    /// It is something else, or it needs what is never accepted: no signature, one by a shared secret, an extension, encryption.
    pub fn parse(text: &'t str) -> Result<Self, TokenInvalid> {
        let parts = text.rsplit_once('.').and_then(|(message, signature)| {
            let (header, claims) = message.split_once('.')?;
            (!claims.contains('.')).then_some((message, header, claims, signature))
        });
        let Some((message, header, claims, signature)) = parts else {
            let text = "expected a token of three parts, a signed one, but it is something else";
            return Err(TokenInvalid::malformed("token", text));
        };
        let header = object(header, "header")?;
        let mut refused = REFUSED_FIELDS.into_iter();
        if let Some(field) = refused.find(|field| header.contains_key(*field)) {
            let text = format!("expected a token without `{field}` in its header, but it has it");
            return Err(TokenInvalid::malformed(field, text));
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm.and_then(SignatureAlgorithm::from_name).ok_or_else(|| {
            let text = "expected `alg` to be an algorithm that verifies with a public key, but it is something else";
            TokenInvalid::malformed("alg", text)
        })?;
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => {
                return Err(TokenInvalid::malformed(
                    "kid",
                    "expected `kid` to be text, but it is not",
                ));
            }
        };
        let claims = object(claims, "claims")?;
        claims::issuer(&claims)?;
        let signature = decode(signature.as_bytes()).ok_or_else(|| {
            let text = "expected a signature in base64url, but it is something else";
            TokenInvalid::malformed("signature", text)
        })?;
        Ok(Self {
            message,
            signature,
            algorithm,
            key_id,
            claims,
        })
    }

    /// The issuer that it names.
    #[must_use]
    pub fn issuer(&self) -> &str {
        claims::issuer(&self.claims).expect("it was checked when the token was parsed")
    }

    /// The `sub` that it names.
    #[must_use]
    pub fn named_subject(&self) -> Option<&str> {
        self.claims.get("sub").and_then(Value::as_str)
    }

    /// Verifies the token at `now_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`TokenInvalid`] names the claim.
    pub fn verify(&self, rules: &Rules, keys: &KeySet, now_ms: u64) -> Result<Proof, TokenInvalid> {
        if !rules.algorithms.contains(&self.algorithm) {
            let text = "expected `alg` to be one that is configured for the issuer, but it is not";
            return Err(TokenInvalid::new(TokenFault::Unknown, "alg", text));
        }
        let key = keys.find(self.key_id.as_deref(), self.algorithm)?;
        let message = self.message.as_bytes();
        if !key
            .public
            .verifies(self.algorithm, message, &self.signature)
        {
            let fault = match self.key_id.is_some() && key.has_id() {
                true => TokenFault::Unknown,
                false => TokenFault::KeyUnknown,
            };
            let text = "expected a token that its issuer has signed, but its signature is wrong";
            return Err(TokenInvalid::new(fault, "signature", text));
        }
        claims::check(&self.claims, rules, now_ms)
    }
}

/// The JSON object in a part of a token.
fn object(part: &str, name: &str) -> Result<Map<String, Value>, TokenInvalid> {
    let object =
        decode(part.as_bytes()).and_then(|json| serde_json::from_slice::<Object>(&json).ok());
    object.map(|object| object.0).ok_or_else(|| {
        let text = format!(
            "expected the {name} to be a JSON object in base64url, but it is something else"
        );
        TokenInvalid::malformed("token", text)
    })
}
