//! The quotas of namespaces that are created and deleted (X37).

use super::dimension::QuotaDimension;
use super::scope::QuotaScope;
use super::set::store;
use crate::ids::Namespace;
use crate::limits::TREE_NAMESPACES_DEFAULT;
use crate::quota_rejection::{QuotaExceeded, QuotaRejection};
use crate::store::StoreError;
use crate::tables::{Quotas, TreeUsages};
use crate::turn::{Turn, TurnResult};
use std::collections::BTreeMap;

/// Checks that the tree of a new namespace may have one more. The root of a tree is not counted.
pub(crate) fn check_room_in_tree(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<()> {
    if !namespace.is_below_root() {
        return Ok(());
    }
    let dimension = QuotaDimension::Namespaces;
    let tree = namespace.tree();
    let used = turn.get::<TreeUsages>(&tree)?;
    let used = used.map_or(0, |usage| usage.of(dimension));
    let scope = QuotaScope::Tree(tree);
    let quota = turn.get::<Quotas>(&scope)?;
    let limit = quota.and_then(|quota| quota.limits.get(&dimension).copied());
    let limit = limit.unwrap_or(TREE_NAMESPACES_DEFAULT);
    if used < limit {
        return Ok(());
    }
    Err(QuotaRejection::Exceeded(Box::new(QuotaExceeded {
        dimension,
        scope,
        limit,
        used,
        retry_after_ms: None,
    }))
    .into())
}

/// Gives a new namespace the limits of the defaults, and counts it.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<(), StoreError> {
    turn.note_use(namespace, QuotaDimension::Namespaces, 1);
    if turn.cluster().quotas_count > 0
        && let Some(defaults) = turn.get::<Quotas>(&QuotaScope::Defaults)?
    {
        let scope = QuotaScope::Namespace(namespace.clone());
        store(turn, &scope, &defaults.limits)?;
    }
    Ok(())
}

/// Ends the limits of a deleted namespace, and no longer counts it.
pub(crate) fn end(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<(), StoreError> {
    turn.note_use(namespace, QuotaDimension::Namespaces, -1);
    if turn.cluster().quotas_count > 0 {
        store(
            turn,
            &QuotaScope::Namespace(namespace.clone()),
            &BTreeMap::new(),
        )?;
    }
    Ok(())
}
