//! Removing the rows of expired keys (A40).

use crate::ids::Namespace;
use crate::limits::SWEEP_ROWS_MAX;
use crate::reply::Done;
use crate::store::StoreError;
use crate::tables::{KeyExpiries, Keys, Table};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Removes keys that have expired, in all namespaces, in bounded pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepKeys {
    /// Where the sweep begins, in milliseconds: no key that is stored expires before, as its proposer
    /// has read. So it walks none of the rows that earlier sweeps took away (design rule 4).
    pub from_ms: u64,
}

impl SweepKeys {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        for row in self.expired(turn)? {
            let (_, namespace, key) = row.clone();
            // Whatever its value: the row says that this key has expired.
            turn.delete::<Keys>(&(namespace, key));
            turn.delete::<KeyExpiries>(&row);
        }
        Ok(Done {})
    }

    /// What has expired, the longest first, as much as one sweep removes.
    fn expired(&self, turn: &Turn<'_, '_>) -> Result<Vec<<KeyExpiries as Table>::Key>, StoreError> {
        let now_ms = turn.now_ms();
        let mut expired = Vec::new();
        turn.visit_from::<KeyExpiries>(&(), &self.from_ms, |row, _| {
            if row.0 > now_ms || expired.len() == SWEEP_ROWS_MAX {
                return ControlFlow::Break(());
            }
            expired.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(expired)
    }
}
