//! The beginning of the access state (X1).

use super::administrator::{AdministratorToken, add};
use super::mode::AccessMode;
use super::secret::SecretHash;
use crate::effect::Effect;
use crate::ids::TokenId;
use crate::reply::Done;
use crate::tables::{Access, AccessRecord};
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
            add(
                turn,
                AdministratorToken {
                    token: bootstrap,
                    name: "bootstrap",
                    expires_at_ms: None,
                },
            )?;
        }
        Ok(Done {})
    }
}
