//! Administrator tokens that the cluster itself creates (X4).

use super::actor::Actor;
use super::grant::Grant;
use super::initialize::BootstrapToken;
use super::role::ClusterRole;
use super::tokens;
use crate::command_scope::CommandScope;
use crate::ids::{Identity, TokenName};
use crate::tables::TokenRecord;
use crate::turn::{Turn, TurnResult};

/// A token with the role `cluster-admin`.
pub(super) struct AdministratorToken {
    pub(super) token: BootstrapToken,
    /// The name of the token and of its user.
    pub(super) name: &'static str,
    pub(super) expires_at_ms: Option<u64>,
}

/// Stores the token.
pub(super) fn add(turn: &mut Turn<'_, '_>, administrator: AdministratorToken) -> TurnResult<()> {
    let AdministratorToken {
        token,
        name,
        expires_at_ms,
    } = administrator;
    let record = TokenRecord {
        name: TokenName::new(name).expect("it is a name"),
        scope: CommandScope::Cluster,
        identity: Identity::new(format!("user:{name}")).expect("it is an identity"),
        grants: vec![Grant::InCluster(ClusterRole::ClusterAdmin)],
        approves: Vec::new(),
        secret: token.secret,
        former_secret: None,
        created_at_ms: turn.now_ms(),
        created_by: Actor::System,
        expires_at_ms,
        revoked_at_ms: None,
        last_used_at_ms: None,
    };
    tokens::add_beyond_limit(turn, token.id, record)
}
