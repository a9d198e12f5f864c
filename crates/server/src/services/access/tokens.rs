//! API tokens of a namespace or of the cluster (X7, X10).

use super::rights::{approves, grants};
use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request::{self, Page};
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_engine::ids::{Identity, TokenId, TokenName};
use flotilla_engine::limits::TOKEN_OVERLAP_MS_MAX;
use flotilla_engine::store::Reader;
use flotilla_engine::{
    AccessRejection, CommandScope, CreateToken, RevokeToken, RotateToken, SecretHash, TokenRecord,
    reply, view,
};
use tokio::time::Instant;

/// The fields of a token to be created.
pub(super) struct NewToken {
    pub(super) name: String,
    pub(super) grants: Vec<String>,
    pub(super) approves: Vec<String>,
    pub(super) identity: String,
    pub(super) ttl_ms: Option<u64>,
    pub(super) secret_sha256: Bytes,
    pub(super) request_id: Bytes,
}

/// A token that a request is about.
pub(super) struct TokenKey {
    scope: CommandScope,
    id: TokenId,
}

/// A page of the tokens of a scope.
pub(super) struct TokenRange {
    pub(super) scope: CommandScope,
    pub(super) page: Page,
}

/// A rotation of a token.
pub(super) struct Rotation {
    pub(super) key: TokenKey,
    pub(super) secret_sha256: Bytes,
    pub(super) overlap_ms: u64,
    pub(super) request_id: Bytes,
}

impl TokenKey {
    pub(super) fn of(scope: CommandScope, id: &str) -> Result<Self, Refusal> {
        let id = TokenId::parse(id).ok_or_else(|| {
            let message =
                format!("expected the id of an API token, 10 digits of base 32, but it is {id:?}");
            Refusal::invalid("id", message).with_hint("`flo token list` shows the ids")
        })?;
        Ok(Self { scope, id })
    }
}

/// Creates a token. Its id follows from its secret, so that a repeated request is the same one.
pub(super) async fn create(
    context: &CallContext,
    (scope, new): (CommandScope, NewToken),
    deadline: Instant,
) -> Result<v1::Token, Refusal> {
    let secret = secret(&new.secret_sha256)?;
    let body = CreateToken {
        id: TokenId::of_secret(secret),
        scope,
        name: request::name("name", TokenName::new(new.name))?,
        identity: request::optional("identity", new.identity, Identity::new)?,
        grants: grants(&new.grants)?,
        approves: approves(new.approves)?,
        secret,
        ttl_ms: new.ttl_ms,
    };
    body.check()?;
    let key = TokenKey {
        scope: body.scope.clone(),
        id: body.id,
    };
    let command = request::cluster_command(&new.request_id, Box::new(body))?;
    let reply::TokenCreated { .. } = context.gateway.submit(command, deadline).await?;
    get(context, key, deadline).await
}

/// The token as everything acknowledged before has left it.
pub(super) async fn get(
    context: &CallContext,
    key: TokenKey,
    deadline: Instant,
) -> Result<v1::Token, Refusal> {
    let look_up = |reader: &dyn Reader| view::token(reader, key.id);
    let gateway = context.gateway.of_scope(&key.scope);
    let found = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let found = found.filter(|record: &TokenRecord| record.scope == key.scope);
    let record = found.ok_or(AccessRejection::TokenNotFound(key.id))?;
    Ok(convert::access::token(key.id, record))
}

/// A page of the tokens of a scope.
pub(super) async fn list(
    context: &CallContext,
    range: TokenRange,
    deadline: Instant,
) -> Result<v1::ListTokensResponse, Refusal> {
    let gateway = context.gateway.of_scope(&range.scope);
    let list = {
        let scope = range.scope.clone();
        move |reader: &dyn Reader| view::tokens(reader, &scope, range.page.range())
    };
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let items = found.items.into_iter();
    Ok(v1::ListTokensResponse {
        items: items
            .map(|(id, record)| convert::access::token(id, record))
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Gives a token another secret.
pub(super) async fn rotate(
    context: &CallContext,
    rotation: Rotation,
    deadline: Instant,
) -> Result<v1::Token, Refusal> {
    request::within("overlap_ms", rotation.overlap_ms, 0..=TOKEN_OVERLAP_MS_MAX)?;
    let body = RotateToken {
        id: rotation.key.id,
        scope: rotation.key.scope.clone(),
        secret: secret(&rotation.secret_sha256)?,
        overlap_ms: rotation.overlap_ms,
    };
    let command = request::cluster_command(&rotation.request_id, Box::new(body))?;
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    get(context, rotation.key, deadline).await
}

/// Ends a token.
pub(super) async fn revoke(
    context: &CallContext,
    (key, request_id): (TokenKey, &Bytes),
    deadline: Instant,
) -> Result<v1::RevokeTokenResponse, Refusal> {
    let command = request::cluster_command(
        request_id,
        RevokeToken {
            id: key.id,
            scope: key.scope,
        },
    )?;
    let reply::TokenRevoked { is_new } = context.gateway.submit(command, deadline).await?;
    Ok(v1::RevokeTokenResponse { revoked: is_new })
}

fn secret(digest: &Bytes) -> Result<SecretHash, Refusal> {
    let digest = <[u8; 32]>::try_from(digest.as_ref()).map_err(|_| {
        let message = format!(
            "expected `secret_sha256` of 32 bytes, but it has {}",
            digest.len()
        );
        Refusal::invalid("secret_sha256", message)
    })?;
    Ok(SecretHash(digest))
}
