//! Finds out who calls (X8, X9).

use super::api_token::{ApiToken, constant_time_eq};
use super::initial_access::not_initialized;
use crate::context::Context;
use crate::deadline;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Gateway;
use crate::limits::CREDENTIAL_BYTES_MAX;
use crate::oidc::ShownToken;
use flotilla_api::token;
use flotilla_engine::{AccessRejection, Actor, BoundActor, SecretHash, TokenRecord, view};
use flotilla_replica::Caller;
use std::net::IpAddr;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

/// The metadata in which a caller shows its credential.
const AUTHORIZATION: &str = "authorization";
const BEARER: &str = "bearer ";

/// What a caller shows, once it is checked.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    /// Who calls.
    pub(super) actor: Actor,
    /// The digest of the secret of a token; `None` without a token, or if a member forwards the call.
    pub(super) secret: Option<SecretHash>,
}

impl Credential {
    /// That of a caller without a token.
    pub(super) fn of(actor: Actor) -> Self {
        Self {
            actor,
            secret: None,
        }
    }
}

/// Who calls with this metadata. A caller that shows a bad credential is never taken for one without.
///
/// # Errors
/// Why the credential is bad, or that it could not be checked before the deadline of the call.
pub(super) async fn authenticate(
    node: &Context,
    metadata: &MetadataMap,
    caller: Option<&Caller>,
) -> Result<Credential, Refusal> {
    let address = caller.and_then(Caller::address);
    let Some(text) = bearer(metadata)? else {
        return Ok(Credential::of(without_token(node, caller)?));
    };
    if let Some(token) = ShownToken::of(text) {
        let actor = of_issuer(node, &token, (address, deadline::of(metadata))).await?;
        return Ok(Credential::of(Actor::Bound(actor)));
    }
    let token = ApiToken::parse(text).ok_or_else(|| {
        let found = match token::ApiToken::has_token_prefix(text) {
            true => "its checksum is wrong, or a part of it is missing",
            false => "it is something else",
        };
        malformed(format!(
            "expected an API token, which begins with `flo_`, or the token of an issuer, but {found}"
        ))
    })?;
    let unknown_credentials = &node.caller_checks.unknown_credentials;
    let lookup = TokenLookup {
        node: &node.node_gateway,
        token,
    };
    let here = lookup.look()?;
    if !here.is_known {
        unknown_credentials.begin_check(address)?;
        if !lookup.is_known(&here, deadline::of(metadata)).await? {
            unknown_credentials.record_bad(address);
            return Err(AccessRejection::CredentialUnknown.into());
        }
    }
    // Whether the token has ended is judged with its rights.
    Ok(Credential {
        actor: Actor::Token(token.id),
        secret: Some(token.secret),
    })
}

/// Who calls with the token of an issuer (X12).
async fn of_issuer(
    node: &Context,
    token: &ShownToken<'_>,
    (address, deadline): (Option<IpAddr>, Instant),
) -> Result<BoundActor, Refusal> {
    let now_ms = node.node_gateway.now_ms();
    if let Some(actor) = node.issuers.remembered(token, now_ms) {
        return Ok(actor);
    }
    let unknown_credentials = &node.caller_checks.unknown_credentials;
    unknown_credentials.begin_check(address)?;
    let verified = node.issuers.verify(token, now_ms, deadline).await;
    verified.inspect_err(|refusal| {
        if refusal.is_unauthenticated() {
            unknown_credentials.record_bad(address);
        }
    })
}

/// Who calls without a token: the subject of its client certificate, unless the cluster is open (X8).
fn without_token(node: &Context, caller: Option<&Caller>) -> Result<Actor, Refusal> {
    let Some(bound) = caller.and_then(Caller::bound_actor) else {
        return Ok(Actor::Anonymous);
    };
    let home = node.node_gateway.home();
    let is_open = home.read_stored(|reader| node.node_gateway.initial_access().is_open(reader))?;
    match is_open && !node.caller_checks.requires_token() {
        true => Ok(Actor::Anonymous),
        false => Ok(Actor::Bound(bound.clone())),
    }
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

/// Looks a token up.
struct TokenLookup<'n> {
    node: &'n Gateway,
    token: ApiToken,
}

/// What a node knows about a token.
struct LookupResult {
    /// Whether the node has applied the access mode of the cluster.
    is_access_initialized: bool,
    /// Whether the cluster, or else the configuration for a new one, has the token with this secret.
    is_known: bool,
}

impl TokenLookup<'_> {
    /// Whether the cluster has the token with this secret, although this node does not know it yet: it may be newer than what
    /// this node has applied.
    async fn is_known(&self, here: &LookupResult, deadline: Instant) -> Result<bool, Refusal> {
        let home = self.node.home();
        let is_access_initialized = here.is_access_initialized;
        // Before a cluster is formed, its bootstrap token is the only credential.
        let initial_access = self.node.initial_access();
        if !is_access_initialized && initial_access.awaits_formation(home.replica()) {
            return Ok(false);
        }
        home.catch_up(deadline).await.map_err(|refusal| {
            if !is_access_initialized {
                return not_initialized();
            }
            let text = format!("expected to check the credential, but that failed: {refusal}");
            Refusal::new(ServerCode::CredentialUncheckable, text)
                .with_hint("send the request again, or send it to another node")
        })?;
        match self.look()? {
            LookupResult {
                is_access_initialized: false,
                is_known: false,
            } => Err(not_initialized()),
            LookupResult { is_known, .. } => Ok(is_known),
        }
    }

    /// Looks in what this node has applied.
    fn look(&self) -> Result<LookupResult, Refusal> {
        let initial_access = self.node.initial_access();
        let Self { node, token } = self;
        let (is_access_initialized, record) = node.home().read_stored(|reader| {
            Ok((
                initial_access.is_initialized(reader)?,
                view::token(reader, token.id)?,
            ))
        })?;
        let now_ms = node.now_ms();
        let is_known = record.is_some_and(|record| has_secret(&record, token.secret, now_ms));
        Ok(LookupResult {
            is_access_initialized,
            is_known: is_known
                || (!is_access_initialized && initial_access.is_bootstrap_token(*token)),
        })
    }
}

/// Whether the token has the secret now.
pub(super) fn has_secret(record: &TokenRecord, secret: SecretHash, now_ms: u64) -> bool {
    let former = record.former_secret.filter(|(_, end_ms)| now_ms < *end_ms);
    let is_former = former.is_some_and(|(former, _)| constant_time_eq(former, secret));
    constant_time_eq(record.secret, secret) || is_former
}
