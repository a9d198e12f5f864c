//! Revoking API tokens (X10).

use super::authority::Authority;
use super::{credentials, tokens};
use crate::command_scope::CommandScope;
use crate::ids::TokenId;
use crate::reply::TokenRevoked;
use crate::tables::TokenRecord;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Ends a token. No later entry carries out a command of it. Revoking a token that has ended changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeToken {
    /// The token.
    pub id: TokenId,
    /// The scope to which it belongs.
    pub scope: CommandScope,
}

impl RevokeToken {
    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        credentials::authority(&self.scope)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<TokenRevoked> {
        let before = tokens::find(turn, &self.scope, self.id)?;
        let now_ms = turn.now_ms();
        if before.has_ended(now_ms) {
            return Ok(TokenRevoked { is_new: false });
        }
        let after = TokenRecord {
            revoked_at_ms: Some(now_ms),
            ..before.clone()
        };
        tokens::replace(turn, self.id, (&before, after))?;
        Ok(TokenRevoked { is_new: true })
    }
}
