//! Reads quotas and what is used of them (X37).

use crate::command::Command;
use crate::limits::TREE_NAMESPACES_DEFAULT;
use crate::quota::{self, DimensionKind, QuotaDimension, QuotaScope};
use crate::quota_rejection::QuotaExceeded;
use crate::sliding_window::Window;
use crate::store::{Reader, StoreError};
use crate::tables::{Cluster, QuotaRecord, QuotaWindows, Quotas, StoredRows, read};

/// The quota that would refuse the command, by the rows of `reader` at `now_ms`. `None` also if the command must be applied to
/// find out (X40).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn quota_refusal(
    reader: &dyn Reader,
    now_ms: u64,
    command: &Command,
) -> Result<Option<QuotaExceeded>, StoreError> {
    quota::foresee(reader, now_ms, command)
}

/// What a scope uses of a dimension, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionUse {
    /// What is limited.
    pub dimension: QuotaDimension,
    /// The limit; `None` if only the engine's bounds limit it.
    pub limit: Option<u64>,
    /// What is used. `None` for items, and for rates without a limit, which are not followed.
    pub used: Option<u64>,
}

/// The quota of a scope. Without limits, it has version 0.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn quota(reader: &dyn Reader, scope: &QuotaScope) -> Result<QuotaRecord, StoreError> {
    Ok(read::<Quotas>(reader, scope)?.unwrap_or_default())
}

/// What a namespace or a tree uses of each dimension, in the order of [`QuotaDimension::ALL`]. The defaults have no use.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn usage(reader: &dyn Reader, scope: &QuotaScope) -> Result<Vec<DimensionUse>, StoreError> {
    let now_ms = read::<Cluster>(reader, &())?.map_or(0, |cluster| cluster.now_ms);
    let limits = quota(reader, scope)?.limits;
    let rows = quota::usages(&mut StoredRows(reader, now_ms), scope)?;
    let is_tree = matches!(scope, QuotaScope::Tree(_));
    let dimensions = QuotaDimension::ALL.iter().copied();
    let dimensions = dimensions.filter(|dimension| is_tree || !dimension.is_of_trees());
    let mut uses = Vec::new();
    for dimension in dimensions {
        let set = limits.get(&dimension).copied();
        let default = dimension.is_of_trees().then_some(TREE_NAMESPACES_DEFAULT);
        let limit = set.or(default);
        let used = match dimension.kind() {
            DimensionKind::Item => None,
            DimensionKind::Count => Some(rows.iter().map(|row| row.of(dimension)).sum()),
            DimensionKind::Rate => match limit {
                Some(limit) => {
                    let key = (scope.clone(), dimension);
                    Some(held(reader, &key, limit, now_ms)?)
                }
                None => None,
            },
        };
        uses.push(DimensionUse {
            dimension,
            limit,
            used,
        });
    }
    Ok(uses)
}

/// What was accepted of a limited rate in the last minute.
fn held(
    reader: &dyn Reader,
    key: &(QuotaScope, QuotaDimension),
    limit: u64,
    now_ms: u64,
) -> Result<u64, StoreError> {
    let window = read::<QuotaWindows>(reader, key)?;
    Ok(window.map_or(0, |window| {
        Window::of_minute(limit).held(&window.slices, now_ms)
    }))
}
