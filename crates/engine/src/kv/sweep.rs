//! Removing the rows of expired keys (A40).

use super::remove;
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::Reply;
use crate::tables::KeyExpiries;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Removes keys that have expired, in all namespaces, in bounded pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepKeys {}

impl SweepKeys {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> Outcome<Reply> {
        let now_ms = turn.now_ms();
        for ((expires_at_ms, namespace, key), _) in turn.list::<KeyExpiries>(&(), SWEEP_ROWS_MAX)? {
            if expires_at_ms > now_ms {
                break;
            }
            remove(turn, &(namespace, key))?;
        }
        Ok(Reply::Done)
    }
}
