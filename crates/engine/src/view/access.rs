//! Reads the access mode, API tokens and bindings, and judges calls (X1, X7, X17, X20).

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::access::{self, Actor, BindingSubject, Needed};
use crate::command_scope::CommandScope;
use crate::envelope::CommandEnvelope;
use crate::ids::{Namespace, TokenId};
use crate::rejection::Rejection;
use crate::store::{Reader, StoreError};
use crate::tables::{
    Access, AccessRecord, BindingRecord, Bindings, BindingsByScope, BlockRecord, BlockedSubjects,
    TokenRecord, Tokens, TokensByScope, read,
};

/// The access mode; `None` until the cluster has set it after its formation.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn access(reader: &dyn Reader) -> Result<Option<AccessRecord>, StoreError> {
    read::<Access>(reader, &())
}

/// The token with this id.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn token(reader: &dyn Reader, id: TokenId) -> Result<Option<TokenRecord>, StoreError> {
    read::<Tokens>(reader, &id)
}

/// The tokens of a scope by id, with those that have ended and are kept.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn tokens(
    reader: &dyn Reader,
    scope: &CommandScope,
    range: PageRange<'_>,
) -> Result<Page<(TokenId, TokenRecord)>, StoreError> {
    let prefix = prefix::<TokensByScope>(scope);
    page::<TokensByScope, _>(
        reader,
        &Scope::new(&prefix, range),
        |reader, (_, id), ()| Ok(read::<Tokens>(reader, &id)?.map(|record| (id, record))),
    )
}

/// The bindings of a scope by subject.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn bindings(
    reader: &dyn Reader,
    scope: &CommandScope,
    range: PageRange<'_>,
) -> Result<Page<(BindingSubject, BindingRecord)>, StoreError> {
    let prefix = prefix::<BindingsByScope>(scope);
    page::<BindingsByScope, _>(
        reader,
        &Scope::new(&prefix, range),
        |reader, (scope, subject), ()| {
            let record = read::<Bindings>(reader, &(subject.clone(), scope))?;
            Ok(record.map(|record| (subject, record)))
        },
    )
}

/// The bindings of a subject by scope: at most one for each namespace, and one in the cluster.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn bindings_of(
    reader: &dyn Reader,
    subject: &BindingSubject,
    range: PageRange<'_>,
) -> Result<Page<(CommandScope, BindingRecord)>, StoreError> {
    let prefix = prefix::<Bindings>(subject);
    page::<Bindings, _>(
        reader,
        &Scope::new(&prefix, range),
        |_, (_, scope), record| Ok(Some((scope, record))),
    )
}

/// The blocked subjects, with those whose block has ended but was not removed.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn blocks(
    reader: &dyn Reader,
    range: PageRange<'_>,
) -> Result<Page<(BindingSubject, BlockRecord)>, StoreError> {
    let prefix = prefix::<BlockedSubjects>(&());
    page::<BlockedSubjects, _>(reader, &Scope::new(&prefix, range), |_, subject, record| {
        Ok(Some((subject, record)))
    })
}

/// Whether `actor` has one of the permissions in the scope at `now_ms`. Servers judge reads with it, and refuse early what
/// the engine would reject.
///
/// # Errors
/// [`StoreError`] if the store fails. The inner error says why the actor has no such right.
pub fn judge(
    reader: &dyn Reader,
    now_ms: u64,
    actor: &Actor,
    needed: Needed<'_>,
) -> Result<Result<(), Rejection>, StoreError> {
    access::judge(reader, now_ms, actor, needed)
}

/// As [`judge`], for what a command needs of its actor.
///
/// # Errors
/// As for [`judge`].
pub fn judge_command(
    reader: &dyn Reader,
    now_ms: u64,
    envelope: &CommandEnvelope,
) -> Result<Result<(), Rejection>, StoreError> {
    access::judge_command(reader, now_ms, envelope)
}

/// As [`judge`], for a call that every valid credential may make.
///
/// # Errors
/// As for [`judge`].
pub fn judge_credential(
    reader: &dyn Reader,
    now_ms: u64,
    actor: &Actor,
) -> Result<Result<(), Rejection>, StoreError> {
    access::judge_credential(reader, now_ms, actor)
}

/// Whether the actor may do anything in the namespace: lists show only such namespaces (X28).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn has_grant_in(
    reader: &dyn Reader,
    now_ms: u64,
    (actor, namespace): (&Actor, &Namespace),
) -> Result<bool, StoreError> {
    access::has_grant_in(reader, now_ms, (actor, namespace))
}
