//! The cursor with which a driver reads due schedules and triggers (design rule 4).

use crate::definition::TriggerIndex;
use crate::ids::{Namespace, WorkflowName};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{Table, encode_prefix, visit};
use std::ops::ControlFlow;

/// A lower bound on due times, so that a driver's reads skip the tombstones of deleted rows.
///
/// A row may be due at any time, even a past one. A driver that keeps a cursor must therefore lower it to the time of
/// each effect that arms what it reads. A driver that may have missed an effect must use a new cursor, which reads from
/// the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct DueCursor {
    /// No row is due before this time, in milliseconds, except those to which the cursor was not lowered.
    from_ms: u64,
}

/// Whose rows are due, the earliest first, and when the next one will be, in milliseconds.
pub(super) type DueRows<K> = (Vec<K>, Option<u64>);

impl DueCursor {
    /// Lowers the cursor to the time of something that became due.
    pub fn lower(&mut self, due_ms: u64) {
        self.from_ms = self.from_ms.min(due_ms);
    }

    /// At most `limit` rows of a table that are due at `now_ms`. The next read begins at the first row that this one
    /// found.
    /// A row's key is a time and whose row it is.
    pub(super) fn read<T, K>(
        &mut self,
        reader: &dyn Reader,
        now_ms: u64,
        limit: usize,
    ) -> Result<DueRows<K>, StoreError>
    where
        T: Table<Record = (), Key: DueKey<Owner = K>>,
    {
        let (mut keys, mut next_due_ms, mut first_ms) = (Vec::new(), None, None);
        let range = KeyRange {
            from: encode_prefix::<T>(&self.from_ms),
            ..KeyRange::prefix(&encode_prefix::<T>(&()))
        };
        visit::<T>(reader, &range, Order::Ascending, |key, ()| {
            let (due_ms, owner) = key.split();
            first_ms.get_or_insert(due_ms);
            if due_ms > now_ms || keys.len() == limit {
                next_due_ms = Some(due_ms.max(now_ms));
                return ControlFlow::Break(());
            }
            keys.push(owner);
            ControlFlow::Continue(())
        })?;
        self.from_ms = first_ms.unwrap_or(u64::MAX);
        Ok((keys, next_due_ms))
    }
}

/// The key of a row that is due at a time.
pub(super) trait DueKey {
    /// Whose row it is.
    type Owner;

    /// The time, in milliseconds, and whose row it is.
    fn split(self) -> (u64, Self::Owner);
}

/// Of a schedule.
impl DueKey for (u64, Namespace, WorkflowName) {
    type Owner = (Namespace, WorkflowName);

    fn split(self) -> (u64, Self::Owner) {
        (self.0, (self.1, self.2))
    }
}

/// Of a trigger.
impl DueKey for (u64, Namespace, WorkflowName, TriggerIndex) {
    type Owner = (Namespace, WorkflowName, TriggerIndex);

    fn split(self) -> (u64, Self::Owner) {
        (self.0, (self.1, self.2, self.3))
    }
}
