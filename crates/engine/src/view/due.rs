//! Where a driver's reads of schedules and triggers that are due begin (design rule 4).

use crate::ids::{Namespace, WorkflowName};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{Table, encode_prefix, visit};
use std::ops::ControlFlow;

/// Where a driver's reads of the rows that are due begin, so that none walks those that were taken
/// away.
///
/// A row may be written for any time, the past included. So whoever reads on with a cursor lowers it to
/// the time of each effect that arms what it reads; whoever may have missed one begins with a new
/// cursor, which reads from the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct DueCursor {
    /// Nothing that the cursor was not lowered to is due before this time, in milliseconds.
    from_ms: u64,
}

/// Whose rows are due, the earliest first, and when the next one will be, in milliseconds.
pub(super) type DueRows = (Vec<(Namespace, WorkflowName)>, Option<u64>);

impl DueCursor {
    /// Something was made due at this time, in milliseconds.
    pub fn lower(&mut self, due_ms: u64) {
        self.from_ms = self.from_ms.min(due_ms);
    }

    /// The rows of a table that are due at `now_ms`, at most `limit`. The next read begins where this
    /// one found the first row.
    pub(super) fn read<T>(
        &mut self,
        reader: &dyn Reader,
        now_ms: u64,
        limit: usize,
    ) -> Result<DueRows, StoreError>
    where
        T: Table<Key = (u64, Namespace, WorkflowName), Record = ()>,
    {
        let (mut keys, mut next_due_ms, mut first_ms) = (Vec::new(), None, None);
        let range = KeyRange {
            from: encode_prefix::<T>(&self.from_ms),
            ..KeyRange::prefix(&encode_prefix::<T>(&()))
        };
        visit::<T>(
            reader,
            &range,
            Order::Ascending,
            |(due_ms, namespace, workflow), ()| {
                first_ms.get_or_insert(due_ms);
                if due_ms > now_ms || keys.len() == limit {
                    next_due_ms = Some(due_ms.max(now_ms));
                    return ControlFlow::Break(());
                }
                keys.push((namespace, workflow));
                ControlFlow::Continue(())
            },
        )?;
        self.from_ms = first_ms.unwrap_or(u64::MAX);
        Ok((keys, next_due_ms))
    }
}
