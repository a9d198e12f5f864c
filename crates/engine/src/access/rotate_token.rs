//! Rotating the secrets of API tokens (X10).

use super::authority::Authority;
use super::secret::SecretHash;
use super::{credentials, tokens};
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::TokenId;
use crate::limits::TOKEN_OVERLAP_MS_MAX;
use crate::reply::Done;
use crate::tables::{TokenRecord, TokenSecrets};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Gives a token another secret. The former one stays valid for a while, so that its holders can change over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotateToken {
    /// The token.
    pub id: TokenId,
    /// The scope to which it belongs.
    pub scope: CommandScope,
    /// The digest of the new secret.
    pub secret: SecretHash,
    /// How long the former secret stays valid, in milliseconds; at most [`TOKEN_OVERLAP_MS_MAX`].
    pub overlap_ms: u64,
}

impl RotateToken {
    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        credentials::authority(&self.scope)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let before = tokens::find(turn, &self.scope, self.id)?;
        let now_ms = turn.now_ms();
        if before.has_ended(now_ms) {
            return Err(AccessRejection::TokenEnded(self.id).into());
        }
        // Who knows the new secret may do what the token may.
        credentials::check_grants(turn, &self.scope, &before.grants)?;
        credentials::check_approves(turn, &self.scope, &before.approves)?;
        tokens::put_secret(turn, self.secret, self.id)?;
        if let Some((oldest, _)) = before.former_secret {
            turn.delete::<TokenSecrets>(&oldest.0);
        }
        let overlap_ms = self.overlap_ms.min(TOKEN_OVERLAP_MS_MAX);
        let after = TokenRecord {
            secret: self.secret,
            former_secret: Some((before.secret, now_ms.saturating_add(overlap_ms))),
            ..before.clone()
        };
        tokens::replace(turn, self.id, (&before, after))?;
        Ok(Done {})
    }
}
