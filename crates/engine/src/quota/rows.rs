//! Where quotas and what is used are read: in a turn, or in a stored state.

use super::count::Change;
use crate::store::StoreError;
use crate::tables::{Cluster, RowSource, StoredRows};
use crate::turn::Turn;

/// Where quotas and what is used are read.
pub(super) trait QuotaRows: RowSource {
    /// How many scopes have a quota.
    fn quotas_count(&mut self) -> Result<u64, StoreError>;
    /// What is noted, but not yet written.
    fn changes(&mut self) -> &[Change];
}

impl QuotaRows for Turn<'_, '_> {
    fn quotas_count(&mut self) -> Result<u64, StoreError> {
        Ok(self.cluster().quotas_count)
    }

    fn changes(&mut self) -> &[Change] {
        self.use_changes()
    }
}

impl QuotaRows for StoredRows<'_> {
    fn quotas_count(&mut self) -> Result<u64, StoreError> {
        let cluster = self.row::<Cluster>(&())?;
        Ok(cluster.map_or(0, |cluster| cluster.quotas_count))
    }

    fn changes(&mut self) -> &[Change] {
        &[]
    }
}
