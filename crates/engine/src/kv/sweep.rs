//! Deleting the rows of expired keys (A40).

use super::count;
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::Done;
use crate::store::StoreError;
use crate::tables::{KeyExpiries, Keys, Table};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Deletes expired keys of all namespaces, in bounded batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepKeys {
    /// Where the sweep begins, in milliseconds: its proposer has read that no stored key expires earlier. The sweep
    /// therefore skips the tombstones of earlier ones (design rule 4).
    pub from_ms: u64,
}

/// The row of an expired key, and what the key counts for in bytes.
type Expired = (<KeyExpiries as Table>::Key, u64);

impl SweepKeys {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        for (row, bytes) in self.expired(turn)? {
            let (_, namespace, key) = row.clone();
            // The value does not matter: the row shows that this key has expired.
            count(turn, &namespace, -1, (bytes, 0));
            turn.delete::<Keys>(&(namespace, key));
            turn.delete::<KeyExpiries>(&row);
        }
        Ok(Done {})
    }

    /// The expired keys, oldest expiry first, limited to one sweep.
    fn expired(&self, turn: &Turn<'_, '_>) -> Result<Vec<Expired>, StoreError> {
        let now_ms = turn.now_ms();
        let mut expired = Vec::new();
        turn.visit_from::<KeyExpiries>(&(), &self.from_ms, |row, bytes| {
            if row.0 > now_ms || expired.len() == SWEEP_ROWS_MAX {
                return ControlFlow::Break(());
            }
            expired.push((row, *bytes));
            ControlFlow::Continue(())
        })?;
        Ok(expired)
    }
}
