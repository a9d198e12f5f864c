//! The access mode, API tokens and bindings as messages.

use flotilla_api::v1;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{
    AccessMode, AccessRecord, Actor, BindingRecord, BindingSubject, BlockRecord, CommandScope,
    Grant, TokenRecord,
};

/// The mode as the API has it.
pub(crate) fn mode(mode: AccessMode) -> v1::AccessMode {
    match mode {
        AccessMode::Open => v1::AccessMode::Open,
        AccessMode::Closed => v1::AccessMode::Closed,
    }
}

/// The access state, without a mode until the cluster has set it.
pub(crate) fn access(record: Option<AccessRecord>) -> v1::Access {
    match record {
        None => v1::Access::default(),
        Some(record) => v1::Access {
            mode: mode(record.mode).into(),
            revision: record.revision,
        },
    }
}

/// A token, without its secret.
pub(crate) fn token(id: TokenId, record: TokenRecord) -> v1::Token {
    v1::Token {
        id: id.to_string(),
        name: record.name.to_string(),
        namespace: record.scope.as_str().to_owned(),
        identity: record.identity.to_string(),
        grants: record.grants.iter().map(Grant::to_string).collect(),
        created_at_ms: record.created_at_ms,
        created_by: author(&record.created_by),
        expires_at_ms: record.expires_at_ms,
        revoked_at_ms: record.revoked_at_ms,
        last_used_at_ms: record.last_used_at_ms,
        approves: record.approves.iter().map(ToString::to_string).collect(),
    }
}

/// The rights of a subject in a scope.
pub(crate) fn binding(
    (subject, scope): (&BindingSubject, &CommandScope),
    record: BindingRecord,
) -> v1::Binding {
    v1::Binding {
        subject: subject.to_string(),
        namespace: scope.as_str().to_owned(),
        grants: record.grants.iter().map(Grant::to_string).collect(),
        approves: record.approves.iter().map(ToString::to_string).collect(),
        changed_at_ms: record.changed_at_ms,
        changed_by: author(&record.changed_by),
    }
}

/// The block of a subject.
pub(crate) fn block(subject: &BindingSubject, record: BlockRecord) -> v1::Block {
    v1::Block {
        subject: subject.to_string(),
        blocked_at_ms: record.blocked_at_ms,
        blocked_by: author(&record.blocked_by),
        ends_at_ms: record.ends_at_ms,
    }
}

/// The credential with which something was changed.
fn author(actor: &Actor) -> Option<String> {
    match actor {
        Actor::System | Actor::Anonymous => None,
        Actor::Token(token) => Some(token.to_string()),
        Actor::Bound(bound) => Some(bound.subject.to_string()),
    }
}
