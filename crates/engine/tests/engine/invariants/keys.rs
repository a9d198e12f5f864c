//! Keys and the index of those that expire.

use super::{read, rows};
use flotilla_engine::rows::{Cluster, KeyExpiries, Keys};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

/// Every key that expires is in the index once, no version was given twice.
pub(super) fn check(store: &MemoryStore) {
    let keys = rows::<Keys>(store, &());
    let expiring = keys.iter().filter_map(|((namespace, key), record)| {
        let expires_at_ms = record.expires_at_ms?;
        let row = (expires_at_ms, namespace.clone(), key.clone());
        Some((row, record.counted_bytes(key)))
    });
    let indexed = rows::<KeyExpiries>(store, &()).into_iter();
    assert_eq!(
        indexed.collect::<BTreeSet<_>>(),
        expiring.collect::<BTreeSet<_>>()
    );
    let versions: BTreeSet<u64> = keys.iter().map(|(_, record)| record.version).collect();
    assert_eq!(versions.len(), keys.len(), "a version was given twice");
    let cluster = read::<Cluster>(store, &()).unwrap_or_default();
    assert!(versions.last() <= Some(&cluster.key_versions_count));
}
