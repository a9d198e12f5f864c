//! Judges whether an actor may do something (X20).

use super::actor::Actor;
use super::mode::AccessMode;
use super::permission::Permission;
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::TokenId;
use crate::rejection::Rejection;
use crate::store::{Reader, StoreError};
use crate::tables::{Access, AccessRecord, TokenRecord, Tokens, read};
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// What a call or a command needs of its actor: one of the permissions, in the scope.
#[derive(Clone, Copy, Debug)]
pub struct Needed<'n> {
    /// The permissions, of which one suffices.
    pub permissions: &'n [Permission],
    /// Where it is needed.
    pub scope: &'n CommandScope,
}

/// The records by which an actor is judged, and the time at which that happens.
pub(super) struct Evidence {
    access: Option<AccessRecord>,
    token: Option<Arc<TokenRecord>>,
    now_ms: u64,
}

impl Evidence {
    /// What the turn finds of the actor.
    pub(super) fn of_turn(turn: &mut Turn<'_, '_>, actor: &Actor) -> Result<Self, StoreError> {
        Ok(Self {
            access: turn.get::<Access>(&())?.map(|record| *record),
            token: match actor {
                Actor::Token(token) => turn.get::<Tokens>(token)?,
                Actor::System | Actor::Anonymous => None,
            },
            now_ms: turn.now_ms(),
        })
    }

    fn of_reader(reader: &dyn Reader, actor: &Actor, now_ms: u64) -> Result<Self, StoreError> {
        Ok(Self {
            access: read::<Access>(reader, &())?,
            token: match actor {
                Actor::Token(token) => read::<Tokens>(reader, token)?.map(Arc::new),
                Actor::System | Actor::Anonymous => None,
            },
            now_ms,
        })
    }

    /// Whether the actor has one of the permissions in the scope.
    fn judge(
        &self,
        actor: &Actor,
        permissions: &[Permission],
        scope: &CommandScope,
    ) -> Result<(), AccessRejection> {
        match actor {
            Actor::System => Ok(()),
            Actor::Anonymous => self.judge_anonymous(),
            Actor::Token(token) => {
                let record = self.live_token(*token)?;
                let is_given = |permission: &Permission| {
                    let mut grants = record.grants.iter();
                    grants.any(|grant| grant.gives(*permission, scope))
                };
                if permissions.iter().any(is_given) {
                    return Ok(());
                }
                Err(AccessRejection::PermissionDenied {
                    permissions: permissions.to_vec(),
                    scope: scope.clone(),
                })
            }
        }
    }

    /// A cluster whose access is not initialized yet has no caller: its nodes refuse them.
    fn judge_anonymous(&self) -> Result<(), AccessRejection> {
        match self.access.map(|access| access.mode) {
            None | Some(AccessMode::Open) => Ok(()),
            Some(AccessMode::Closed) => Err(AccessRejection::CredentialMissing),
        }
    }

    /// The token, if it has not ended.
    pub(super) fn live_token(&self, id: TokenId) -> Result<&TokenRecord, AccessRejection> {
        let Some(record) = &self.token else {
            return Err(AccessRejection::CredentialUnknown);
        };
        if record.revoked_at_ms.is_some() {
            return Err(AccessRejection::CredentialRevoked(id));
        }
        if record.is_expired(self.now_ms) {
            return Err(AccessRejection::CredentialExpired(id));
        }
        Ok(record)
    }
}

/// Whether the cluster is closed.
pub(crate) fn is_closed(turn: &mut Turn<'_, '_>) -> Result<bool, StoreError> {
    let access = turn.get::<Access>(&())?;
    Ok(access.is_some_and(|access| access.mode == AccessMode::Closed))
}

/// Whether `actor` has one of the permissions in the scope at `now_ms`, by the rows of `reader`. For servers, which judge reads,
/// and refuse early what `authorize` would reject.
///
/// # Errors
/// [`StoreError`] if the store fails. The inner error says why the actor has no such right.
pub(crate) fn judge(
    reader: &dyn Reader,
    now_ms: u64,
    actor: &Actor,
    needed: Needed<'_>,
) -> Result<Result<(), Rejection>, StoreError> {
    let evidence = Evidence::of_reader(reader, actor, now_ms)?;
    let judged = evidence.judge(actor, needed.permissions, needed.scope);
    Ok(judged.map_err(Into::into))
}

/// Whether the actor is one that may call at all at `now_ms`, by the rows of `reader`.
pub(crate) fn judge_credential(
    reader: &dyn Reader,
    now_ms: u64,
    actor: &Actor,
) -> Result<Result<(), Rejection>, StoreError> {
    let evidence = Evidence::of_reader(reader, actor, now_ms)?;
    Ok(match actor {
        Actor::System => Ok(()),
        Actor::Anonymous => evidence.judge_anonymous().map_err(Into::into),
        Actor::Token(token) => evidence.live_token(*token).map(drop).map_err(Into::into),
    })
}

/// Checks that the turn's actor has one of the permissions in the scope.
pub(crate) fn judge_turn(
    turn: &mut Turn<'_, '_>,
    permissions: &[Permission],
    scope: &CommandScope,
) -> TurnResult<()> {
    let actor = turn.actor();
    let evidence = Evidence::of_turn(turn, &actor)?;
    Ok(evidence.judge(&actor, permissions, scope)?)
}
