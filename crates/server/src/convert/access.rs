//! The access mode and API tokens as messages.

use flotilla_api::v1;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{AccessMode, AccessRecord, Actor, Grant, TokenRecord};

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
        created_by: match record.created_by {
            Actor::Token(token) => Some(token.to_string()),
            Actor::System | Actor::Anonymous => None,
        },
        expires_at_ms: record.expires_at_ms,
        revoked_at_ms: record.revoked_at_ms,
        last_used_at_ms: record.last_used_at_ms,
        approves: record.approves.iter().map(ToString::to_string).collect(),
    }
}
