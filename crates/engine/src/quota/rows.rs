//! Where quotas and what is used are read: in a turn, or in a stored state.

use super::count::Change;
use crate::store::{Reader, StoreError};
use crate::tables::{Cluster, Table, read};
use crate::turn::Turn;
use std::sync::Arc;

/// Where quotas and what is used are read.
pub(super) trait QuotaRows {
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError>;
    fn now_ms(&self) -> u64;
    /// How many scopes have a quota.
    fn quotas_count(&mut self) -> Result<u64, StoreError>;
    /// What is noted, but not yet written.
    fn changes(&mut self) -> &[Change];
}

impl QuotaRows for Turn<'_, '_> {
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError> {
        self.get::<T>(key)
    }

    fn now_ms(&self) -> u64 {
        self.now_ms()
    }

    fn quotas_count(&mut self) -> Result<u64, StoreError> {
        Ok(self.cluster().quotas_count)
    }

    fn changes(&mut self) -> &[Change] {
        self.use_changes()
    }
}

/// A stored state, read at a time in milliseconds.
pub(super) struct StoredRows<'r>(pub(super) &'r dyn Reader, pub(super) u64);

impl QuotaRows for StoredRows<'_> {
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError> {
        Ok(read::<T>(self.0, key)?.map(Arc::new))
    }

    fn now_ms(&self) -> u64 {
        self.1
    }

    fn quotas_count(&mut self) -> Result<u64, StoreError> {
        let cluster = self.row::<Cluster>(&())?;
        Ok(cluster.map_or(0, |cluster| cluster.quotas_count))
    }

    fn changes(&mut self) -> &[Change] {
        &[]
    }
}
