//! When API tokens were used last (X7).

use crate::ids::TokenId;
use crate::limits::TOKEN_USE_MS;
use crate::reply::Done;
use crate::tables::Tokens;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Notes that callers have shown these tokens. The time is exact to [`TOKEN_USE_MS`], so that a token in constant use is
/// written once in that time, however many nodes report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTokenUses {
    /// The tokens, at most [`TOKEN_USES_MAX`](crate::limits::TOKEN_USES_MAX). Those that the cluster no longer keeps are left
    /// out.
    pub tokens: Vec<TokenId>,
}

impl RecordTokenUses {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let now_ms = turn.now_ms();
        let used_at_ms = now_ms - now_ms % TOKEN_USE_MS;
        for id in &self.tokens {
            let record = turn.get::<Tokens>(id)?;
            let is_new =
                record.is_some_and(|record| record.last_used_at_ms.unwrap_or(0) < used_at_ms);
            if is_new {
                turn.edit::<Tokens, _>(id, |record| record.last_used_at_ms = Some(used_at_ms))?;
            }
        }
        Ok(Done {})
    }
}
