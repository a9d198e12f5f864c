//! The beginning of the access state (X1).

use super::actor::Actor;
use super::grant::Grant;
use super::mode::AccessMode;
use super::role::ClusterRole;
use super::secret::SecretHash;
use super::tokens;
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::ids::{Identity, TokenId, TokenName};
use crate::reply::Done;
use crate::tables::{Access, AccessRecord, TokenRecord};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Sets the access mode of a new cluster, with the bootstrap token if it has one. Without effect once the mode is set: of
/// several leaders, the first decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitializeAccess {
    /// The mode.
    pub mode: AccessMode,
    /// The bootstrap token, which administers the cluster.
    pub bootstrap: Option<BootstrapToken>,
}

/// A token that was made before the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapToken {
    /// Its id.
    pub id: TokenId,
    /// The digest of its secret.
    pub secret: SecretHash,
}

impl InitializeAccess {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        if turn.get::<Access>(&())?.is_some() {
            return Ok(Done {});
        }
        turn.put::<Access>(
            &(),
            AccessRecord {
                mode: self.mode,
                revision: 1,
            },
        );
        turn.effect(Effect::AccessChanged);
        if let Some(bootstrap) = self.bootstrap {
            let record = TokenRecord {
                name: TokenName::new("bootstrap").expect("it is a name"),
                scope: CommandScope::Cluster,
                identity: Identity::new("user:bootstrap").expect("it is an identity"),
                grants: vec![Grant::InCluster(ClusterRole::ClusterAdmin)],
                secret: bootstrap.secret,
                former_secret: None,
                created_at_ms: turn.now_ms(),
                created_by: Actor::System,
                expires_at_ms: None,
                revoked_at_ms: None,
            };
            tokens::add(turn, bootstrap.id, record)?;
        }
        Ok(Done {})
    }
}
