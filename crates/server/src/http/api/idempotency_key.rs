//! The id by which the cluster recognizes a repeated request, from the header `Idempotency-Key` (H9).

use super::refusals::invalid_header;
use crate::errors::Refusal;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use flotilla_api::token::ApiToken;
use flotilla_oidc::UnverifiedToken;
use flotilla_replica::Caller;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid, Variant, Version};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest key that is accepted. In bytes.
const KEY_BYTES_MAX: usize = 255;
const ID_BYTES: usize = 16;
/// The bytes of a UUID of version 7 that hold its time.
const TIME_BYTES: usize = 6;

/// The id of the request. The same key of the same caller, for the same method and path, gives the same id at every node.
/// `None` without a key.
///
/// # Errors
/// The header is repeated, or the key is empty, too long or not printable.
pub(super) fn deduplication_id(parts: &Parts) -> Result<Option<[u8; ID_BYTES]>, Refusal> {
    let mut keys = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    let key = key.to_str().ok().filter(|key| {
        let is_printable = key
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        (1..=KEY_BYTES_MAX).contains(&key.len()) && is_printable
    });
    let key = key.filter(|_| keys.next().is_none()).ok_or_else(|| {
        invalid_header(format!(
            "expected one `Idempotency-Key` of 1 to {KEY_BYTES_MAX} printable ASCII characters, but it is invalid or repeated"
        ))
    })?;
    Ok(Some(derived(parts, key)))
}

fn derived(parts: &Parts, key: &str) -> [u8; ID_BYTES] {
    let mut digest = Sha256::new();
    for part in [
        caller(parts).as_bytes(),
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        key.as_bytes(),
    ] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&digest.finalize()[..ID_BYTES]);
    match Uuid::parse_str(key) {
        // Ids in the order of time cost the cluster less (ADR 0023).
        Ok(uuid) if uuid.get_version() == Some(Version::SortRand) => {
            id[..TIME_BYTES].copy_from_slice(&uuid.as_bytes()[..TIME_BYTES]);
            Builder::from_bytes(id)
                .with_variant(Variant::RFC4122)
                .with_version(Version::SortRand)
                .into_uuid()
                .into_bytes()
        }
        // Of version 8, so that its first bytes are not read as a time.
        _ => Builder::from_custom_bytes(id).into_uuid().into_bytes(),
    }
}

/// The caller: the id of its token, which stays the same when the secret is rotated, or the subject of its certificate. For the
/// token of an issuer, what it names, so that a retry can have a newer token; whether it is genuine is checked with the call.
fn caller(parts: &Parts) -> String {
    let Some(credential) = parts.headers.get(AUTHORIZATION) else {
        let bound = parts.extensions.get().and_then(Caller::bound_actor);
        return bound.map_or_else(String::new, |bound| bound.subject.to_string());
    };
    let text = credential.to_str().unwrap_or_default();
    let Some((_, shown)) = text.split_once(' ') else {
        return text.to_owned();
    };
    if let Some(token) = ApiToken::parts(shown) {
        return token.id.to_owned();
    }
    match UnverifiedToken::parse(shown) {
        Ok(token) => format!(
            "{} {}",
            token.issuer(),
            token.named_subject().unwrap_or(shown)
        ),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::certified;
    use axum::http::Request;

    fn id(
        token: Option<&str>,
        path: &str,
        key: Option<&str>,
    ) -> Result<Option<[u8; ID_BYTES]>, Refusal> {
        let mut request = Request::post(path);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        deduplication_id(&parts)
    }

    /// The id of a request of a caller with a client certificate.
    fn id_of_certified(subject: &str) -> Result<Option<[u8; ID_BYTES]>, Refusal> {
        let request = Request::post("/v1/a").header(IDEMPOTENCY_KEY, "order-7");
        let request = request.extension(certified(subject));
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        deduplication_id(&parts)
    }

    #[test]
    fn a_key_stands_for_one_request_of_one_caller() {
        let first = "flo_aaaaaaaabb_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg0MSLWU";
        let known = id(Some(first), "/v1/a", Some("order-7"));
        assert_eq!(known, id(Some(first), "/v1/a", Some("order-7")));
        for other in [
            id(None, "/v1/a", Some("order-7")),
            id(Some(first), "/v1/b", Some("order-7")),
            id(Some(first), "/v1/a", Some("order-8")),
            id(Some(first), "/v1/a", None),
        ] {
            assert_ne!(known, other);
        }
        let till = id_of_certified("cert:dns:till");
        assert_eq!(till, id_of_certified("cert:dns:till"));
        assert_ne!(till, id_of_certified("cert:dns:other"));
        assert_ne!(till, id(None, "/v1/a", Some("order-7")));
        // The services draw an id that does not depend on this node's clock.
        assert_eq!(id(None, "/v1/a", None), Ok(None));
    }

    #[test]
    fn a_renewed_token_of_an_issuer_is_that_of_the_same_caller() {
        // Of Ada, of Ada later, and of Bob.
        let [ada, later, bob] = [
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EuZXhhbXBsZSIsInN1YiI6ImFkYSIsImV4cCI6MX0.AAAA",
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EuZXhhbXBsZSIsInN1YiI6ImFkYSIsImV4cCI6Mn0.BBBB",
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EuZXhhbXBsZSIsInN1YiI6ImJvYiIsImV4cCI6MX0.AAAA",
        ]
        .map(|token| id(Some(token), "/v1/a", Some("order-7")));
        assert!(ada.is_ok());
        assert_eq!(ada, later);
        assert_ne!(ada, bob);
    }

    #[test]
    fn only_an_id_with_a_time_looks_like_one() {
        let version = |id: [u8; ID_BYTES]| Uuid::from_bytes(id).get_version();
        for number in 0..100 {
            let id = id(None, "/v1/a", Some(&format!("key-{number}")))
                .expect("a key")
                .expect("an id");
            assert_eq!(version(id), Some(Version::Custom), "{number}");
        }
        for number in 0..100 {
            let key = Uuid::now_v7();
            let timed = id(None, &format!("/v1/a{number}"), Some(&key.to_string()));
            let timed = timed.expect("a key").expect("an id");
            assert_eq!(version(timed), Some(Version::SortRand));
            assert_eq!(Uuid::from_bytes(timed).get_variant(), Variant::RFC4122);
            assert_eq!(timed[..TIME_BYTES], key.as_bytes()[..TIME_BYTES]);
            assert_ne!(&timed, key.as_bytes());
        }
    }

    #[test]
    fn a_key_is_short_and_printable() {
        for key in ["", &"k".repeat(256), "a\u{e9}"] {
            assert!(id(None, "/v1/a", Some(key)).is_err(), "{key}");
        }
        assert!(id(None, "/v1/a", Some(&"k".repeat(255))).is_ok());
    }
}
