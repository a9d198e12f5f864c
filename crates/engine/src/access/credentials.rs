//! What the commands on credentials share: API tokens and bindings (X7, X17, X19).

use super::actor::Actor;
use super::authority::Authority;
use super::grant::Grant;
use super::judge::{Evidence, judge_turn};
use super::permission::Permission;
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::ids::{ApproverRole, Identity};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{Access, BindingCounts, Bindings, Table, TokenCounts, Tokens};
use crate::turn::{Turn, TurnResult};

/// What a command needs that creates, changes or ends credentials of the scope.
pub(super) fn authority(scope: &CommandScope) -> Authority<'_> {
    match scope {
        CommandScope::Cluster => Authority::Caller(&[Permission::AccessWrite], scope),
        CommandScope::Namespace(_) => Authority::Caller(&[Permission::TokenWrite], scope),
    }
}

/// Checks that the turn's actor may have credentials of the scope with these grants made or learn their secrets (X19): it must
/// have them itself.
pub(super) fn check_grants(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    grants: &[Grant],
) -> TurnResult<()> {
    let actor = turn.actor();
    let evidence = Evidence::of(turn, &actor, scope)?;
    let Some(own) = evidence.grants()? else {
        // The cluster itself, or a caller that needs no credential.
        return Ok(());
    };
    let own = own.concat();
    match grants.iter().find(|grant| !grant.is_covered_by(&own)) {
        None => Ok(()),
        Some(beyond) => Err(AccessRejection::GrantExceedsOwn(beyond.clone()).into()),
    }
}

/// Checks that the turn's actor may have credentials of the scope with these approver roles made or learn their secrets
/// (X19): it must have them itself, or may assign identities, and could so decide as any of those who have them.
pub(super) fn check_approves(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
    roles: &[ApproverRole],
) -> TurnResult<()> {
    let own = holder_of(turn, scope)?;
    let own = own.as_ref().map_or(&[][..], |own| &own.approves);
    if roles.iter().all(|role| own.contains(role)) {
        return Ok(());
    }
    judge_turn(turn, &[Permission::IdentityAssign], scope)
}

/// The stored count.
pub(super) fn count_of<T: Table<Record = u64>>(
    turn: &mut Turn<'_, '_>,
    key: &T::Key,
) -> Result<u64, StoreError> {
    Ok(turn.get::<T>(key)?.map_or(0, |count| *count))
}

/// Stores a count; there is no row for 0.
pub(super) fn put_count<T: Table<Record = u64>>(turn: &mut Turn<'_, '_>, key: &T::Key, count: u64) {
    match count {
        0 => turn.delete::<T>(key),
        count => turn.put::<T>(key, count),
    }
}

/// Checks that there is room for one more of something.
pub(super) fn check_room(noun: &str, (count, count_max): (u64, u64)) -> Result<(), Rejection> {
    if count < count_max {
        return Ok(());
    }
    Err(Rejection::LimitExceeded {
        noun: noun.to_owned(),
        count_max,
    })
}

/// The kinds of credentials that the scope still has, in the plural.
pub(crate) fn credentials_left(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
) -> Result<Vec<&'static str>, StoreError> {
    let mut left = Vec::new();
    if turn.get::<TokenCounts>(scope)?.is_some() {
        left.push("API tokens");
    }
    if turn.get::<BindingCounts>(scope)?.is_some() {
        left.push("bindings");
    }
    Ok(left)
}

/// Counts a change of the mode or of a credential, so that servers judge again what they remember.
pub(super) fn note_change(turn: &mut Turn<'_, '_>) -> TurnResult<()> {
    turn.edit::<Access, _>(&(), |record| record.revision += 1)?;
    turn.effect(Effect::AccessChanged);
    Ok(())
}

/// Who acts with a credential.
pub(crate) struct Holder {
    /// On whose account it acts.
    pub(crate) identity: Identity,
    /// Its approver roles in a scope.
    pub(crate) approves: Vec<ApproverRole>,
}

/// The identity of the turn's actor; `None` for a caller without a credential and for the cluster itself.
pub(crate) fn identity_of(turn: &mut Turn<'_, '_>) -> Result<Option<Identity>, StoreError> {
    Ok(match turn.actor() {
        Actor::System | Actor::Anonymous => None,
        Actor::Token(token) => turn
            .get::<Tokens>(&token)?
            .map(|record| record.identity.clone()),
        Actor::Bound(bound) => Some(bound.subject.identity()),
    })
}

/// As [`identity_of`], with the approver roles that the actor has in the scope.
pub(crate) fn holder_of(
    turn: &mut Turn<'_, '_>,
    scope: &CommandScope,
) -> Result<Option<Holder>, StoreError> {
    let Some(identity) = identity_of(turn)? else {
        return Ok(None);
    };
    let approves = match turn.actor() {
        Actor::System | Actor::Anonymous => Vec::new(),
        Actor::Token(token) => turn
            .get::<Tokens>(&token)?
            .map_or_else(Vec::new, |record| record.approves.clone()),
        Actor::Bound(bound) => {
            let mut approves = Vec::new();
            for key in bound.bindings_for(scope) {
                let binding = turn.get::<Bindings>(&key)?;
                approves.extend(binding.iter().flat_map(|binding| binding.approves.clone()));
            }
            approves
        }
    };
    Ok(Some(Holder { identity, approves }))
}
