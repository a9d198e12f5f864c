//! Judges whether an actor may do something (X20).

use super::actor::{Actor, BoundActor};
use super::binding_subject::BindingSubject;
use super::grant::Grant;
use super::mode::AccessMode;
use super::permission::Permission;
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::{Namespace, TokenId};
use crate::rejection::Rejection;
use crate::store::{Reader, StoreError};
use crate::tables::{
    Access, BindingRecord, Bindings, BlockRecord, BlockedSubjects, RowSource, StoredRows,
    TokenRecord, Tokens,
};
use crate::turn::{Turn, TurnResult};
use smallvec::SmallVec;
use std::sync::Arc;

/// The grants of an actor, one list for each of its records: its token, or the bindings of its subjects in the cluster and in a
/// namespace.
pub(super) type GrantLists<'e> = SmallVec<[&'e [Grant]; 2]>;

/// What a call or a command needs of its actor: one of the permissions, in the scope.
#[derive(Clone, Copy, Debug)]
pub struct Needed<'n> {
    /// The permissions, of which one suffices.
    pub permissions: &'n [Permission],
    /// Where it is needed.
    pub scope: &'n CommandScope,
}

/// What an actor is judged by in a scope, and the time in milliseconds at which that happens.
pub(super) struct Evidence<'a> {
    credential: Credential<'a>,
    now_ms: u64,
}

/// The credential of an actor, with its rows.
enum Credential<'a> {
    /// The cluster itself needs none.
    System,
    /// It shows none. A cluster whose access is not initialized yet is open: it has no caller, because its nodes refuse them.
    None { is_open: bool },
    /// A token, and its record, if there is one.
    Token(TokenId, Option<Arc<TokenRecord>>),
    /// A subject with its groups, their bindings that can give it rights in the scope, and their blocks.
    Subject {
        bound: &'a BoundActor,
        bindings: Vec<Arc<BindingRecord>>,
        blocks: Vec<(&'a BindingSubject, Arc<BlockRecord>)>,
    },
}

impl<'a> Credential<'a> {
    fn of(
        rows: &mut impl RowSource,
        actor: &'a Actor,
        scope: &CommandScope,
    ) -> Result<Self, StoreError> {
        Ok(match actor {
            Actor::System => Self::System,
            Actor::Anonymous => {
                let access = rows.row::<Access>(&())?;
                let is_open = access.is_none_or(|access| access.mode == AccessMode::Open);
                Self::None { is_open }
            }
            Actor::Token(token) => Self::Token(*token, rows.row::<Tokens>(token)?),
            Actor::Bound(bound) => {
                let mut bindings = Vec::new();
                for key in bound.bindings_for(scope) {
                    bindings.extend(rows.row::<Bindings>(&key)?);
                }
                let mut blocks = Vec::new();
                for subject in bound.subjects() {
                    let block = rows.row::<BlockedSubjects>(subject)?;
                    blocks.extend(block.map(|block| (subject, block)));
                }
                Self::Subject {
                    bound,
                    bindings,
                    blocks,
                }
            }
        })
    }
}

impl<'a> Evidence<'a> {
    /// What the rows have of the actor.
    pub(super) fn of(
        rows: &mut impl RowSource,
        actor: &'a Actor,
        scope: &CommandScope,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            credential: Credential::of(rows, actor, scope)?,
            now_ms: rows.now_ms(),
        })
    }

    /// Whether the actor has one of the permissions in the scope.
    fn judge(&self, needed: Needed<'_>) -> Result<(), AccessRejection> {
        let Needed { permissions, scope } = needed;
        let Some(grants) = self.grants()? else {
            return Ok(());
        };
        let is_given = |permission: &Permission| {
            let mut grants = grants.iter().copied().flatten();
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

    /// The grants of the actor, one list for each of its records; `None` if it may do everything.
    ///
    /// # Errors
    /// Its credential is not valid, or it needs one and shows none.
    pub(super) fn grants(&self) -> Result<Option<GrantLists<'_>>, AccessRejection> {
        match &self.credential {
            Credential::System | Credential::None { is_open: true } => Ok(None),
            Credential::None { is_open: false } => Err(AccessRejection::CredentialMissing),
            Credential::Token(id, record) => {
                let record = self.live_token(*id, record.as_deref())?;
                Ok(Some(GrantLists::from_slice(&[&record.grants])))
            }
            Credential::Subject {
                bound,
                bindings,
                blocks,
            } => {
                self.check_subject(bound, blocks)?;
                let lists = bindings.iter().map(|binding| &binding.grants[..]);
                Ok(Some(lists.collect()))
            }
        }
    }

    /// The token, if it has not ended.
    fn live_token<'e>(
        &self,
        id: TokenId,
        record: Option<&'e TokenRecord>,
    ) -> Result<&'e TokenRecord, AccessRejection> {
        let Some(record) = record else {
            return Err(AccessRejection::CredentialUnknown);
        };
        if record.revoked_at_ms.is_some() {
            return Err(AccessRejection::CredentialRevoked(id));
        }
        if record.is_expired(self.now_ms) {
            return Err(AccessRejection::CredentialExpired(Actor::Token(id)));
        }
        Ok(record)
    }

    /// Checks that the proof of the subject has not expired, and that neither the subject nor one of its groups is blocked.
    fn check_subject(
        &self,
        bound: &BoundActor,
        blocks: &[(&BindingSubject, Arc<BlockRecord>)],
    ) -> Result<(), AccessRejection> {
        if bound.ends_at_ms <= self.now_ms {
            let actor = Actor::Bound(bound.clone()).into_author();
            return Err(AccessRejection::CredentialExpired(actor));
        }
        let mut blocks = blocks.iter();
        match blocks.find(|(_, block)| block.is_in_force(self.now_ms)) {
            None => Ok(()),
            Some((subject, _)) => Err(AccessRejection::SubjectBlocked((*subject).clone())),
        }
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
    let evidence = Evidence::of(&mut StoredRows(reader, now_ms), actor, needed.scope)?;
    Ok(evidence.judge(needed).map_err(Into::into))
}

/// Whether the actor is one that may call at all at `now_ms`, by the rows of `reader`.
pub(crate) fn judge_credential(
    reader: &dyn Reader,
    now_ms: u64,
    actor: &Actor,
) -> Result<Result<(), Rejection>, StoreError> {
    let mut rows = StoredRows(reader, now_ms);
    let evidence = Evidence::of(&mut rows, actor, &CommandScope::Cluster)?;
    Ok(evidence.grants().map(drop).map_err(Into::into))
}

/// Whether the actor may do anything in the namespace at `now_ms`, by the rows of `reader`.
pub(crate) fn has_grant_in(
    reader: &dyn Reader,
    now_ms: u64,
    (actor, namespace): (&Actor, &Namespace),
) -> Result<bool, StoreError> {
    let scope = CommandScope::Namespace(namespace.clone());
    let evidence = Evidence::of(&mut StoredRows(reader, now_ms), actor, &scope)?;
    Ok(match evidence.grants() {
        Err(_) => false,
        Ok(None) => true,
        Ok(Some(grants)) => {
            let mut grants = grants.iter().copied().flatten();
            grants.any(|grant| grant.is_in(namespace))
        }
    })
}

/// Checks that the turn's actor has one of the permissions in the scope.
pub(crate) fn judge_turn(
    turn: &mut Turn<'_, '_>,
    permissions: &[Permission],
    scope: &CommandScope,
) -> TurnResult<()> {
    let actor = turn.actor();
    let evidence = Evidence::of(turn, &actor, scope)?;
    Ok(evidence.judge(Needed { permissions, scope })?)
}
