//! Once it is acknowledged that a token is revoked, or that a subject is unbound or blocked, nothing is done with it (X20): what
//! its owner writes then is newer than all that was written with the credential, even by commands that were on their way.

use super::rows::rows;
use crate::outside::written_key_of;
use crate::record::{Events, Operation, Outcome};
use flotilla_engine::ids::KvKey;
use flotilla_engine::rows::Keys;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{Body, Reply, reply};
use std::collections::BTreeMap;

pub(super) fn check(events: &Events, store: &MemoryStore) -> Vec<String> {
    let mut versions: BTreeMap<KvKey, u64> = BTreeMap::new();
    for (key, version) in events.operations.iter().filter_map(acknowledged_write) {
        let newest = versions.entry(key.clone()).or_default();
        *newest = version.max(*newest);
    }
    // A write whose outcome is unknown is in the state only.
    for ((_, key), record) in rows::<Keys>(store, &()) {
        let newest = versions.entry(key).or_default();
        *newest = record.version.max(*newest);
    }
    let late = |(ended, limit): (&KvKey, &u64)| {
        let written = written_key_of(ended)?;
        let version = versions.get(&written).filter(|version| *version > limit)?;
        Some(format!(
            "expected no write with a credential that has ended, but key {written} has version {version}, and the credential ended \
             before version {limit} was written"
        ))
    };
    versions.iter().filter_map(late).collect()
}

fn acknowledged_write(operation: &Operation) -> Option<(&KvKey, u64)> {
    match (&operation.command.body, &operation.outcome) {
        (Body::SetKey(set), Outcome::Acknowledged(Reply::KeySet(reply::KeySet { version }))) => {
            Some((&set.key, *version))
        }
        _ => None,
    }
}
