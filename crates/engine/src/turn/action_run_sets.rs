//! Indexes by action run, of which a row holds a block.

use super::Turn;
use crate::ids::ActionRunNumber;
use crate::store::StoreError;
use crate::tables::{ActionRunSet, Table};

impl Turn<'_, '_> {
    /// Adds an action run to the set at `key`, which is that of its block.
    pub(crate) fn insert_member<T: Table<Record = ActionRunSet>>(
        &mut self,
        key: &T::Key,
        member: ActionRunNumber,
    ) -> Result<(), StoreError> {
        if self.edit::<T, _>(key, |set| set.insert(member))?.is_none() {
            self.put::<T>(key, ActionRunSet::of(member));
        }
        Ok(())
    }

    /// Removes an action run from the set at `key`, which is that of its block, if it is there.
    pub(crate) fn remove_member<T: Table<Record = ActionRunSet>>(
        &mut self,
        key: &T::Key,
        member: ActionRunNumber,
    ) -> Result<(), StoreError> {
        let is_empty = self.edit::<T, _>(key, |set| {
            set.remove(member);
            set.is_empty()
        })?;
        if is_empty == Some(true) {
            self.delete::<T>(key);
        }
        Ok(())
    }
}
