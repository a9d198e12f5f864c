//! Creation of an administrator token when all others are lost (X4).

use super::administrator::{AdministratorToken, add};
use super::initialize::BootstrapToken;
use crate::limits::RECOVERY_TOKEN_TTL_MS;
use crate::reply::Done;
use crate::tables::Tokens;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Creates a token that administers the cluster for a day. Does nothing if there is a token with this id, so that a node may
/// propose it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverAccess {
    /// The token.
    pub token: BootstrapToken,
}

impl RecoverAccess {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        if turn.get::<Tokens>(&self.token.id)?.is_none() {
            let expires_at_ms = turn.now_ms().saturating_add(RECOVERY_TOKEN_TTL_MS);
            add(
                turn,
                AdministratorToken {
                    token: self.token,
                    name: "recovery",
                    expires_at_ms: Some(expires_at_ms),
                },
            )?;
        }
        Ok(Done {})
    }
}
