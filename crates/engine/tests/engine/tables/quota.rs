//! Quotas, and the use that they limit.

use super::{Row, row};
use crate::samples;
use flotilla_engine::rows::{
    QuotaWindowRecord, QuotaWindows, Quotas, TimeSlice, TreeUsages, UsageRecord, Usages,
};
use flotilla_engine::{QuotaDimension, QuotaScope};
use std::collections::BTreeMap;

pub(super) fn rows() -> Vec<Row> {
    let scope = QuotaScope::Namespace(samples::namespace());
    let usage = UsageRecord {
        counts: BTreeMap::from([(QuotaDimension::OpenRuns, 4)]),
    };
    let window = QuotaWindowRecord {
        slices: vec![TimeSlice {
            last_ms: 1_000,
            count: 3,
        }],
    };
    vec![
        row::<Quotas>(scope.clone(), samples::quota::quota_record()),
        row::<Usages>(samples::namespace(), usage.clone()),
        row::<TreeUsages>(samples::quota::tree(), usage),
        row::<QuotaWindows>((scope, QuotaDimension::StartsPerMinute), window),
    ]
}
