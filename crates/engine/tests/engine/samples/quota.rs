//! A quota, and the command that sets it.

use flotilla_engine::ids::TreeName;
use flotilla_engine::{Body, QuotaDimension, QuotaRecord, QuotaScope, SetQuota};
use std::collections::BTreeMap;

pub(crate) fn tree() -> TreeName {
    TreeName::new("acme").expect("the root of a tree")
}

pub(crate) fn limits() -> BTreeMap<QuotaDimension, u64> {
    BTreeMap::from([
        (QuotaDimension::OpenRuns, 10),
        (QuotaDimension::Namespaces, 3),
    ])
}

pub(crate) fn quota_record() -> QuotaRecord {
    QuotaRecord {
        version: 7,
        limits: limits(),
    }
}

/// One command of each kind, in the order of the enum.
pub(crate) fn bodies() -> Vec<Body> {
    vec![Body::SetQuota(Box::new(SetQuota {
        scope: QuotaScope::Tree(tree()),
        expected_version: Some(6),
        limits: limits(),
    }))]
}
