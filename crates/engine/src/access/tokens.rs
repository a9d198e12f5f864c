//! The rows of API tokens, shared by their commands (X7).

use super::credentials::{check_room, count_of, note_change, put_count};
use super::secret::SecretHash;
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::TokenId;
use crate::limits::{CLUSTER_TOKENS_MAX, NAMESPACE_TOKENS_MAX, TOKEN_KEPT_MS};
use crate::quota::{self, QuotaDimension};
use crate::store::StoreError;
use crate::tables::{TokenCounts, TokenRecord, TokenSecrets, Tokens, TokensByScope, TokensEnding};
use crate::turn::{Turn, TurnResult};

/// Ended tokens that the creation of a token deletes at most.
const SWEPT_MAX: usize = 16;

impl TokenRecord {
    /// Whether it has expired at `now_ms`.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }

    /// When it ends or has ended, in milliseconds.
    #[must_use]
    pub fn ends_at_ms(&self) -> Option<u64> {
        match (self.revoked_at_ms, self.expires_at_ms) {
            (Some(revoked), Some(expires)) => Some(revoked.min(expires)),
            (revoked, expires) => revoked.or(expires),
        }
    }

    /// Whether it has expired or was revoked at `now_ms`.
    #[must_use]
    pub fn has_ended(&self, now_ms: u64) -> bool {
        self.ends_at_ms().is_some_and(|end_ms| end_ms <= now_ms)
    }
}

/// The token of the scope with this id.
pub(super) fn find(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    id: TokenId,
) -> TurnResult<TokenRecord> {
    match turn.get::<Tokens>(&id)? {
        Some(record) if record.scope == *scope => Ok(TokenRecord::clone(&record)),
        Some(_) | None => Err(AccessRejection::TokenNotFound(id).into()),
    }
}

/// Stores a new token, unless its scope has too many.
pub(super) fn add(turn: &mut Turn<'_, '_>, id: TokenId, record: TokenRecord) -> TurnResult<()> {
    let scope = record.scope.clone();
    let count_max = match scope {
        CommandScope::Cluster => CLUSTER_TOKENS_MAX,
        CommandScope::Namespace(_) => NAMESPACE_TOKENS_MAX,
    };
    let count = sweep(turn, &scope, count_max)?;
    if let CommandScope::Namespace(namespace) = &scope {
        quota::check(turn, namespace, &[(QuotaDimension::Tokens, 1)])?;
    }
    check_room("API tokens", (count, count_max))?;
    store(turn, id, (record, count))
}

/// Stores a new token, however many its scope has: for an administrator without whom none of them could be revoked.
pub(super) fn add_beyond_limit(
    turn: &mut Turn<'_, '_>,
    id: TokenId,
    record: TokenRecord,
) -> TurnResult<()> {
    let count = sweep(turn, &record.scope, u64::MAX)?;
    store(turn, id, (record, count))
}

/// Stores a new token of a scope that has this many.
fn store(
    turn: &mut Turn<'_, '_>,
    id: TokenId,
    (record, count): (TokenRecord, u64),
) -> TurnResult<()> {
    let scope = record.scope.clone();
    put_secret(turn, record.secret, id)?;
    put_end(turn, id, &record);
    note_use(turn, &scope, 1);
    put_count::<TokenCounts>(turn, &scope, count + 1);
    turn.put::<TokensByScope>(&(scope, id), ());
    turn.put::<Tokens>(&id, record);
    note_change(turn)
}

/// Counts the tokens of a namespace for its quotas.
fn note_use(turn: &mut Turn<'_, '_>, scope: &CommandScope, by: i64) {
    if let CommandScope::Namespace(namespace) = scope {
        turn.note_use(namespace, QuotaDimension::Tokens, by);
    }
}

/// Stores what has changed in a token.
pub(super) fn replace(
    turn: &mut Turn<'_, '_>,
    id: TokenId,
    (before, after): (&TokenRecord, TokenRecord),
) -> TurnResult<()> {
    if let Some(ends_at_ms) = before.ends_at_ms() {
        turn.delete::<TokensEnding>(&(before.scope.clone(), ends_at_ms, id));
    }
    put_end(turn, id, &after);
    turn.put::<Tokens>(&id, after);
    note_change(turn)
}

/// Notes that the token has the secret, which no other token may have had.
pub(super) fn put_secret(
    turn: &mut Turn<'_, '_>,
    secret: SecretHash,
    id: TokenId,
) -> TurnResult<()> {
    if turn.get::<TokenSecrets>(&secret.0)?.is_some() {
        return Err(AccessRejection::TokenSecretTaken.into());
    }
    turn.put::<TokenSecrets>(&secret.0, id);
    Ok(())
}

fn put_end(turn: &mut Turn<'_, '_>, id: TokenId, record: &TokenRecord) {
    if let Some(ends_at_ms) = record.ends_at_ms() {
        turn.put::<TokensEnding>(&(record.scope.clone(), ends_at_ms, id), ());
    }
}

/// Deletes tokens of the scope that ended so long ago that they are no longer kept, and, if the scope has no room, those that
/// ended later. Returns how many tokens the scope has.
fn sweep(turn: &mut Turn<'_, '_>, scope: &CommandScope, count_max: u64) -> Result<u64, StoreError> {
    let count = count_of::<TokenCounts>(turn, scope)?;
    let now_ms = turn.now_ms();
    let ended_by_ms = match count < count_max {
        true => now_ms.saturating_sub(TOKEN_KEPT_MS),
        false => now_ms,
    };
    let removed = remove_ended_by(turn, scope, (ended_by_ms, SWEPT_MAX))?;
    Ok(count - removed as u64)
}

/// Deletes tokens of the scope that have ended, at most `count_max`. Returns how many.
pub(crate) fn remove_ended_tokens(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    count_max: usize,
) -> Result<usize, StoreError> {
    remove_ended_by(turn, scope, (turn.now_ms(), count_max))
}

fn remove_ended_by(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    (ended_by_ms, count_max): (u64, usize),
) -> Result<usize, StoreError> {
    let mut ended = turn.keys::<TokensEnding>(scope, count_max)?;
    ended.retain(|(_, ends_at_ms, _)| *ends_at_ms <= ended_by_ms);
    if ended.is_empty() {
        return Ok(0);
    }
    for key in &ended {
        delete(turn, key.2)?;
        turn.delete::<TokensEnding>(key);
    }
    note_use(
        turn,
        scope,
        -i64::try_from(ended.len()).expect("a batch is bounded"),
    );
    let count = count_of::<TokenCounts>(turn, scope)?;
    put_count::<TokenCounts>(turn, scope, count.saturating_sub(ended.len() as u64));
    Ok(ended.len())
}

fn delete(turn: &mut Turn<'_, '_>, id: TokenId) -> Result<(), StoreError> {
    if let Some(record) = turn.get::<Tokens>(&id)? {
        turn.delete::<TokenSecrets>(&record.secret.0);
        if let Some((former, _)) = record.former_secret {
            turn.delete::<TokenSecrets>(&former.0);
        }
        turn.delete::<TokensByScope>(&(record.scope.clone(), id));
        turn.delete::<Tokens>(&id);
    }
    Ok(())
}
