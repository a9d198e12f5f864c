//! Quotas, and the use that they limit (X37, X38).

use super::tables;
use crate::ids::{Namespace, TreeName};
use crate::quota::{QuotaDimension, QuotaScope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By scope: the limits of a namespace or tree, and those that new namespaces begin with. Live while there are
    /// limits; those of a namespace at most as long as the namespace.
    115 Quotas(QuotaScope) -> QuotaRecord, HOT;
    /// What a namespace uses. Lives as long as anything is counted, also beyond the namespace: expired keys.
    116 Usages(Namespace) -> UsageRecord, HOT;
    /// What the namespaces below the root of a tree use together. Lives as long as anything is counted.
    117 TreeUsages(TreeName) -> UsageRecord, HOT;
    /// What was accepted of a limited rate in the last minute. Lives from the first acceptance on as long as the limit.
    118 QuotaWindows((QuotaScope, QuotaDimension)) -> QuotaWindowRecord, HOT;
}

/// The limits of a scope. At least one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRecord {
    /// The version, from a cluster-wide sequence, so that no earlier quota has the same.
    pub version: u64,
    /// The limits by dimension. What is missing is limited by the engine's bounds only.
    pub limits: BTreeMap<QuotaDimension, u64>,
}

/// What is used, by dimension. Only what is not zero, and only counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// The counters.
    pub counts: BTreeMap<QuotaDimension, u64>,
}

impl UsageRecord {
    /// How much is used of a dimension.
    #[must_use]
    pub fn of(&self, dimension: QuotaDimension) -> u64 {
        self.counts.get(&dimension).copied().unwrap_or(0)
    }

    /// Changes a counter.
    ///
    /// # Panics
    /// If it would be less than zero.
    pub(crate) fn change(&mut self, dimension: QuotaDimension, by: i64) {
        let count = self.of(dimension).checked_add_signed(by);
        let count = count.expect("only what was counted is no longer counted");
        match count {
            0 => self.counts.remove(&dimension),
            count => self.counts.insert(dimension, count),
        };
    }
}

/// What was accepted in a sliding window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaWindowRecord {
    /// The slices, the oldest first.
    pub slices: Vec<TimeSlice>,
}

/// What was accepted in one time slice of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSlice {
    /// The time of the last acceptance, in milliseconds.
    pub last_ms: u64,
    /// How much.
    pub count: u64,
}
