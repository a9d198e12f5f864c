//! Finds out who calls (X8, X9).

use super::api_token::ApiToken;
use crate::deadline;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Gateway;
use crate::limits::CREDENTIAL_BYTES_MAX;
use flotilla_engine::{AccessRejection, Actor, SecretHash, TokenRecord, view};
use tonic::metadata::MetadataMap;

/// The metadata in which a caller shows its credential.
pub(super) const AUTHORIZATION: &str = "authorization";
const BEARER: &str = "bearer ";

/// Who calls with this metadata. A caller that shows a bad credential is never taken for one without.
///
/// # Errors
/// Why the credential is bad, or that it could not be checked before the deadline of the call.
pub(super) async fn authenticate(node: &Gateway, metadata: &MetadataMap) -> Result<Actor, Refusal> {
    let Some(text) = bearer(metadata)? else {
        return Ok(Actor::Anonymous);
    };
    let token = ApiToken::parse(text).ok_or_else(|| {
        let found = match ApiToken::is_meant(text) {
            true => "its checksum is wrong, or a part of it is missing",
            false => "it is something else",
        };
        malformed(format!(
            "expected an API token, which begins with `flo_`, but {found}"
        ))
    })?;
    if !is_known(node, token, metadata).await? {
        return Err(AccessRejection::CredentialUnknown.into());
    }
    // Whether the token has ended is judged with its rights.
    Ok(Actor::Token(token.id))
}

/// The bearer credential, if the caller shows any.
fn bearer(metadata: &MetadataMap) -> Result<Option<&str>, Refusal> {
    let mut shown = metadata.get_all(AUTHORIZATION).iter();
    let Some(value) = shown.next() else {
        return Ok(None);
    };
    if shown.next().is_some() {
        let text = "expected one credential, but the request shows several";
        return Err(malformed(text.to_owned()));
    }
    let text = value.to_str().ok();
    let text = text.filter(|text| text.len() <= CREDENTIAL_BYTES_MAX);
    let parts = text.and_then(|text| text.split_at_checked(BEARER.len()));
    let bearer = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER));
    let (_, credential) = bearer.ok_or_else(|| {
        malformed(format!(
            "expected `authorization: Bearer TOKEN` of at most {CREDENTIAL_BYTES_MAX} bytes, but it is something else"
        ))
    })?;
    Ok(Some(credential))
}

fn malformed(message: String) -> Refusal {
    Refusal::new(ServerCode::CredentialMalformed, message)
        .with_hint("an API token is shown as `authorization: Bearer flo_…`")
}

/// Whether the cluster has the token with this secret. One that this node does not know yet may be newer than what it has
/// applied.
async fn is_known(
    node: &Gateway,
    token: ApiToken,
    metadata: &MetadataMap,
) -> Result<bool, Refusal> {
    let home = node.home();
    let look = || {
        let record = home.read_stored(|reader| view::token(reader, token.id))?;
        let now_ms = node.now_ms();
        Ok::<_, Refusal>(record.is_some_and(|record| has_secret(&record, token.secret, now_ms)))
    };
    if look()? {
        return Ok(true);
    }
    home.catch_up(deadline::of(metadata))
        .await
        .map_err(|refusal| {
            let text = format!("expected to check the credential, but that failed: {refusal}");
            Refusal::new(ServerCode::CredentialUncheckable, text)
                .with_hint("send the request again, or send it to another node")
        })?;
    look()
}

/// Whether the token has the secret now.
fn has_secret(record: &TokenRecord, secret: SecretHash, now_ms: u64) -> bool {
    let former = record.former_secret.filter(|(_, end_ms)| now_ms < *end_ms);
    let is_former = former.is_some_and(|(former, _)| is_same(former, secret));
    is_same(record.secret, secret) || is_former
}

/// Compares in a time that does not depend on where the two differ.
fn is_same(one: SecretHash, other: SecretHash) -> bool {
    let pairs = one.0.iter().zip(&other.0);
    pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}
