//! The text of API tokens: the credential of a caller (X6).

use prost::bytes::Bytes;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use std::fmt;

/// The prefix of every token, by which secret scanners recognize it.
const PREFIX: &str = "flo_";
/// The digits of a secret: 256 random bits in base 62.
const SECRET_DIGITS: usize = 43;
/// The digits of the checksum: the CRC-32 of everything before, in base 62.
const CHECK_DIGITS: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// What is digested before the secret.
const HASH_DOMAIN: &[u8] = b"flotilla token v1\0";

/// An API token, `flo_ID_SECRETCHECK`, which a client shows with each call. Its debug output does not contain it.
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

    /// Whether the text starts with the prefix of a token.
    #[must_use]
    pub fn has_token_prefix(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The parts of the token; `None` if the text has another form, or if its checksum is wrong.
    #[must_use]
    pub fn parts(text: &str) -> Option<TokenParts<'_>> {
        let (checked, check) = text.split_at_checked(text.len().checked_sub(CHECK_DIGITS)?)?;
        let (id, secret) = checked.strip_prefix(PREFIX)?.split_once('_')?;
        let is_digit = |byte| DIGITS.contains(&byte);
        let is_secret = secret.len() == SECRET_DIGITS && secret.bytes().all(is_digit);
        (is_secret && check == check_digits(checked)).then(|| TokenParts {
            id,
            secret_sha256: digest(secret),
        })
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiToken")
    }
}

/// What a token consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenParts<'t> {
    /// Its id, 10 digits of base 32, which is not checked.
    pub id: &'t str,
    /// The digest of its secret. The cluster stores only the digest.
    pub secret_sha256: [u8; 32],
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
        Bytes::copy_from_slice(&digest(&self.0))
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

fn digest(secret: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(HASH_DOMAIN);
    hasher.update(secret);
    hasher.finalize().into()
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
    fn a_token_is_taken_apart_as_it_was_put_together() {
        let secret = TokenSecret::draw();
        let digest = secret.sha256();
        let token = secret.into_token("aaaaaaaabb");
        let parts = ApiToken::parts(token.expose()).expect("a token");
        assert_eq!(
            (parts.id, &parts.secret_sha256[..]),
            ("aaaaaaaabb", &digest[..])
        );
    }

    #[test]
    fn a_mistyped_token_is_refused_before_it_is_looked_up() {
        let right = "flo_aaaaaaaabb_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg0MSLWU";
        for position in 0..right.len() {
            let mut wrong = right.to_owned().into_bytes();
            wrong[position] = if wrong[position] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).expect("ASCII");
            assert_eq!(ApiToken::parts(&wrong), None, "{wrong}");
        }
        let put_together = |secret: &str| TokenSecret(secret.to_owned()).into_token("aaaaaaaabb").0;
        for text in [
            "",
            "flo_",
            &right[..right.len() - 1],
            &format!("{right}0"),
            "flo_ä",
            &put_together("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"),
            &put_together("_123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"),
        ] {
            assert_eq!(ApiToken::parts(text), None, "{text}");
        }
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
