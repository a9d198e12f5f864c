//! API tokens: the credential of a caller (X6).

use bytes::Bytes;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use std::fmt;

const PREFIX: &str = "flo_";
/// The digits of a secret: 256 random bits in base 62.
const SECRET_DIGITS: usize = 43;
/// The digits of the checksum.
const CHECK_DIGITS: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// What is digested before the secret.
const HASH_DOMAIN: &[u8] = b"flotilla token v1\0";

/// An API token, which a client shows with each call. Its debug output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken(String);

impl ApiToken {
    /// The token with this text. The cluster decides whether it is valid.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, which is a secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiToken")
    }
}

/// The secret of a token to be created or rotated. The cluster gets its digest only.
pub struct TokenSecret(String);

impl TokenSecret {
    /// Draws a secret of 256 random bits.
    #[must_use]
    pub fn draw() -> Self {
        Self(Alphanumeric.sample_string(&mut rand::rng(), SECRET_DIGITS))
    }

    /// The digest that the cluster stores: 32 bytes, for `secret_sha256` of a request.
    #[must_use]
    pub fn sha256(&self) -> Bytes {
        let mut hasher = Sha256::new();
        hasher.update(HASH_DOMAIN);
        hasher.update(&self.0);
        Bytes::copy_from_slice(&hasher.finalize())
    }

    /// The token with this secret and the id that the cluster has given it.
    #[must_use]
    pub fn into_token(self, id: &str) -> ApiToken {
        let checked = format!("{PREFIX}{id}_{}", self.0);
        let check = check_digits(&checked);
        ApiToken(format!("{checked}{check}"))
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenSecret")
    }
}

/// The CRC-32 of a text, in base 62.
fn check_digits(checked: &str) -> String {
    let mut rest = crc32fast::hash(checked.as_bytes());
    let mut digits = [0; CHECK_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_put_together_as_documented() {
        let secret = TokenSecret("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg".to_owned());
        let digest = secret.sha256();
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = secret.into_token("aaaaaaaabb");
        assert_eq!(
            (hex.as_str(), token.expose()),
            (
                "83bf91d36e3577105550ba08e68bbf60a0560c7b5d916cec9986099c9cdd901a",
                "flo_aaaaaaaabb_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg0MSLWU"
            )
        );
    }

    #[test]
    fn no_debug_output_has_the_secret() {
        let secret = TokenSecret::draw();
        assert_eq!(secret.0.len(), SECRET_DIGITS);
        let text = secret.0.clone();
        let mut shown = format!("{secret:?}");
        shown.push_str(&format!("{:?}", secret.into_token("aaaaaaaabb")));
        assert!(!shown.contains(&text), "{shown}");
    }

    #[test]
    fn two_secrets_differ() {
        assert_ne!(TokenSecret::draw().sha256(), TokenSecret::draw().sha256());
    }
}
