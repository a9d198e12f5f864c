//! Changing a quota (X37).

use super::dimension::QuotaDimension;
use super::scope::QuotaScope;
use crate::limits::QUOTAS_MAX;
use crate::quota_rejection::QuotaRejection;
use crate::rejection::Rejection;
use crate::reply::QuotaSet;
use crate::store::StoreError;
use crate::tables::{Namespaces, QuotaRecord, QuotaWindows, Quotas};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Replaces the limits of a scope. A limit below what is used is taken: nothing is deleted, new work is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetQuota {
    /// Whose quota.
    pub scope: QuotaScope,
    /// The version that it must have, 0 for no limits; `None` for any.
    pub expected_version: Option<u64>,
    /// All limits from now on. Without any, only the engine's bounds are left.
    pub limits: BTreeMap<QuotaDimension, u64>,
}

impl SetQuota {
    /// Checks the fields, so that a server can refuse them before the proposal.
    ///
    /// # Errors
    /// [`QuotaRejection::DimensionOfTrees`] for a limit that only trees have.
    pub fn check(&self) -> Result<(), QuotaRejection> {
        if matches!(self.scope, QuotaScope::Tree(_)) {
            return Ok(());
        }
        let mut dimensions = self.limits.keys();
        match dimensions.find(|dimension| dimension.is_of_trees()) {
            None => Ok(()),
            Some(dimension) => Err(QuotaRejection::DimensionOfTrees {
                dimension: *dimension,
                scope: self.scope.clone(),
            }),
        }
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<QuotaSet> {
        self.check()?;
        if let QuotaScope::Namespace(namespace) = &self.scope
            && turn.get::<Namespaces>(namespace)?.is_none()
        {
            return Err(QuotaRejection::NamespaceMissing(self.scope.clone()).into());
        }
        let before = turn.get::<Quotas>(&self.scope)?;
        let found = before.as_ref().map_or(0, |quota| quota.version);
        if self
            .expected_version
            .is_some_and(|expected| expected != found)
        {
            return Err(QuotaRejection::VersionMismatch {
                scope: self.scope.clone(),
                expected: self.expected_version.unwrap_or(0),
                found,
            }
            .into());
        }
        let is_same = match &before {
            Some(before) => before.limits == self.limits,
            None => self.limits.is_empty(),
        };
        if is_same {
            return Ok(QuotaSet { version: found });
        }
        if found == 0 && turn.cluster().quotas_count >= QUOTAS_MAX as u64 {
            return Err(Rejection::too_many("quotas", QUOTAS_MAX).into());
        }
        let version = store(turn, &self.scope, &self.limits)?;
        Ok(QuotaSet { version })
    }
}

/// Stores the limits of a scope, and forgets the windows of rates that are no longer limited. Returns the version; 0 if there
/// are no limits.
pub(super) fn store(
    turn: &mut Turn<'_, '_>,
    scope: &QuotaScope,
    limits: &BTreeMap<QuotaDimension, u64>,
) -> Result<u64, StoreError> {
    let before = turn.get::<Quotas>(scope)?;
    for dimension in before.iter().flat_map(|before| before.limits.keys()) {
        if !limits.contains_key(dimension) {
            turn.delete::<QuotaWindows>(&(scope.clone(), *dimension));
        }
    }
    if before.is_some() {
        turn.cluster_mut().quotas_count -= 1;
    }
    if limits.is_empty() {
        if before.is_some() {
            turn.delete::<Quotas>(scope);
        }
        return Ok(0);
    }
    turn.cluster_mut().quotas_count += 1;
    let version = turn.next_number(|cluster| &mut cluster.quota_versions_count);
    let limits = limits.clone();
    turn.put::<Quotas>(scope, QuotaRecord { version, limits });
    Ok(version)
}
