//! The text of API tokens (X6): `flo_ID_SECRETCHECK`.

use flotilla_engine::SecretHash;
use flotilla_engine::ids::TokenId;
use sha2::{Digest, Sha256};

/// What every token begins with, by which scanners find it.
const PREFIX: &str = "flo_";
/// The digits of the secret: 256 random bits in base 62.
const SECRET_DIGITS: usize = 43;
/// The digits of the checksum: the CRC-32 of everything before, in base 62.
const CHECK_DIGITS: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// What is digested before the secret.
const HASH_DOMAIN: &[u8] = b"flotilla token v1\0";

/// An API token that a caller shows: the digest of its secret only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApiToken {
    pub(super) id: TokenId,
    pub(super) secret: SecretHash,
}

impl ApiToken {
    /// Whether the text is meant to be a token.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Parses the text; `None` if it has another form, or if its checksum is wrong.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (checked, check) = text.split_at_checked(text.len().checked_sub(CHECK_DIGITS)?)?;
        let (id, secret) = checked.strip_prefix(PREFIX)?.split_once('_')?;
        let is_secret = secret.len() == SECRET_DIGITS && secret.bytes().all(is_digit);
        if !is_secret || check != check_digits(checked) {
            return None;
        }
        Some(Self {
            id: TokenId::parse(id)?,
            secret: hash(secret),
        })
    }
}

/// The digest of a secret, which is all that the state has of it.
fn hash(secret: &str) -> SecretHash {
    let mut hasher = Sha256::new();
    hasher.update(HASH_DOMAIN);
    hasher.update(secret);
    SecretHash(hasher.finalize().into())
}

fn is_digit(byte: u8) -> bool {
    DIGITS.contains(&byte)
}

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

    const SECRET: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg";

    fn token(id: &str, secret: &str) -> String {
        let checked = format!("{PREFIX}{id}_{secret}");
        let check = check_digits(&checked);
        format!("{checked}{check}")
    }

    #[test]
    fn a_token_is_an_id_and_a_secret() {
        let parsed = ApiToken::parse(&token("aaaaaaaabb", SECRET)).expect("a token");
        assert_eq!(parsed.id, TokenId::from_bits(33));
        assert_eq!(parsed.secret, hash(SECRET));
        assert_ne!(parsed.secret, hash(&SECRET.replace('0', "1")));
    }

    /// A test of the client library puts the same token together.
    #[test]
    fn a_token_of_the_client_library_is_understood() {
        let text = "flo_aaaaaaaabb_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg0MSLWU";
        let parsed = ApiToken::parse(text).expect("a token");
        let hex: String = parsed
            .secret
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "83bf91d36e3577105550ba08e68bbf60a0560c7b5d916cec9986099c9cdd901a"
        );
    }

    #[test]
    fn a_mistyped_token_is_refused_before_it_is_looked_up() {
        let right = token("aaaaaaaabb", SECRET);
        for position in 0..right.len() {
            let mut wrong = right.clone().into_bytes();
            wrong[position] = if wrong[position] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).expect("ASCII");
            assert_eq!(ApiToken::parse(&wrong), None, "{wrong}");
        }
        for text in [
            "",
            "flo_",
            &right[..right.len() - 1],
            &format!("{right}0"),
            "flo_ä",
        ] {
            assert_eq!(ApiToken::parse(text), None, "{text}");
        }
        assert_eq!(ApiToken::parse(&token("aaaaaaaab1", SECRET)), None);
        assert_eq!(ApiToken::parse(&token("aaaaaaaabb", &SECRET[1..])), None);
        assert_eq!(
            ApiToken::parse(&token("aaaaaaaabb", &SECRET.replace('0', "_"))),
            None
        );
    }
}
