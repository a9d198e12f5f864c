//! Tokens of identity providers, and their key sets (X12, X13).

use super::place::assert_sentence;
use crate::target::{Target, Verdict};
use flotilla_oidc::{
    GROUPS_BYTES_MAX, GROUPS_MAX, KEYS_MAX, KeySet, NAME_BYTES_MAX, Proof, Rules, UnverifiedToken,
};

pub(super) const TARGET: Target = Target {
    name: "jwt",
    summary: "tokens and key sets of an issuer: none is accepted that it has not signed, and what one proves is bounded",
    tokens: &[
        ".",
        "eyJ",
        "eyJhbGciOiJub25lIn0",
        "eyJhbGciOiJFZERTQSJ9",
        "{\"keys\":[",
        "\"kty\":\"RSA\"",
        "\"kty\":\"EC\"",
        "\"kty\":\"OKP\"",
        "\"crv\":\"P-256\"",
        "\"use\":\"enc\"",
        "\"alg\":\"RS256\"",
        "\"n\":\"AQAB\"",
        "AAAA",
        "=",
        "{}",
        "]}",
    ],
    check,
};

/// The keys of the issuer. Its private key is kept nowhere.
const KEYS: &[u8] = include_bytes!("../../corpus/jwt/keys");
/// The tokens that it has signed and that are accepted.
const GENUINE: [&str; 2] = [
    include_str!("../../corpus/jwt/ada"),
    include_str!("../../corpus/jwt/groups"),
];
const NOW_MS: u64 = 1_800_000_000_000;

fn check(input: &[u8]) -> Verdict {
    if input.first() == Some(&b'{') {
        return check_keys(input);
    }
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    match verify(text, NOW_MS) {
        Ok(proof) => {
            let signed = |token: &str| token.rsplit_once('.').map(|(signed, _)| signed.to_owned());
            let is_genuine = GENUINE.iter().any(|token| signed(token) == signed(text));
            assert!(is_genuine, "the issuer has not signed it");
            check_proof(&proof);
            assert_eq!(verify(text, proof.ends_at_ms - 1), Ok(proof.clone()));
            assert!(verify(text, proof.ends_at_ms).is_err());
            Verdict::Accepted
        }
        Err(refused) => {
            assert_sentence(&refused);
            Verdict::Refused
        }
    }
}

/// What the token proves, or why it is refused.
fn verify(text: &str, now_ms: u64) -> Result<Proof, String> {
    let keys = KeySet::parse(KEYS).expect("a key set");
    let rules = Rules::new("https://corp.example", "flotilla");
    let token = UnverifiedToken::parse(text).map_err(|invalid| invalid.to_string())?;
    let verified = token.verify(&rules, &keys, now_ms);
    verified.map_err(|invalid| invalid.to_string())
}

fn check_proof(proof: &Proof) {
    let bytes: usize = proof.groups.iter().map(String::len).sum();
    assert!(proof.groups.len() <= GROUPS_MAX && bytes <= GROUPS_BYTES_MAX);
    assert!(proof.groups.is_sorted());
    for name in proof.groups.iter().chain([&proof.subject]) {
        assert!((1..=NAME_BYTES_MAX).contains(&name.len()), "{name:?}");
        assert!(!name.contains(char::is_control), "{name:?}");
    }
    assert!(proof.ends_at_ms > NOW_MS);
}

fn check_keys(input: &[u8]) -> Verdict {
    match KeySet::parse(input) {
        Ok(keys) => {
            assert!((1..=KEYS_MAX).contains(&keys.count()));
            Verdict::Accepted
        }
        Err(invalid) => {
            assert!(invalid.to_string().contains(", but"), "{invalid}");
            Verdict::Refused
        }
    }
}
