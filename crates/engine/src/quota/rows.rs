//! Where quotas and what is used are read: in a turn, or in a stored state.

use super::count::Change;
use super::scope::QuotaScope;
use crate::store::StoreError;
use crate::tables::{Cluster, RowSource, StoredRows, TreeUsages, UsageRecord, Usages};
use crate::turn::Turn;
use std::sync::Arc;

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

/// The rows whose sum the scope uses. The defaults have no use.
pub(crate) fn usages(
    rows: &mut impl RowSource,
    scope: &QuotaScope,
) -> Result<Vec<Arc<UsageRecord>>, StoreError> {
    let found = match scope {
        QuotaScope::Defaults => [None, None],
        QuotaScope::Namespace(namespace) => [rows.row::<Usages>(namespace)?, None],
        QuotaScope::Tree(tree) => [
            rows.row::<TreeUsages>(tree)?,
            rows.row::<Usages>(&tree.root())?,
        ],
    };
    Ok(found.into_iter().flatten().collect())
}
