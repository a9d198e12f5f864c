//! What namespaces use is a recount of their rows (X38): open runs, keys and bytes of streams.

use super::rows::rows;
use flotilla_engine::QuotaDimension;
use flotilla_engine::ids::Namespace;
use flotilla_engine::rows::{Keys, Runs, Streams, Usages};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

const COUNTED: [QuotaDimension; 4] = [
    QuotaDimension::OpenRuns,
    QuotaDimension::KvKeys,
    QuotaDimension::KvBytes,
    QuotaDimension::StreamBytes,
];

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut found: BTreeMap<(Namespace, QuotaDimension), u64> = BTreeMap::new();
    let mut add = |namespace: &Namespace, dimension, count: u64| {
        *found.entry((namespace.clone(), dimension)).or_default() += count;
    };
    for (_, run) in rows::<Runs>(store, &()) {
        let is_open = u64::from(run.status.is_open());
        add(&run.namespace, QuotaDimension::OpenRuns, is_open);
    }
    for ((namespace, key), record) in rows::<Keys>(store, &()) {
        let bytes = record.counted_bytes(&key);
        add(&namespace, QuotaDimension::KvKeys, 1);
        add(&namespace, QuotaDimension::KvBytes, bytes);
    }
    for (_, stream) in rows::<Streams>(store, &()) {
        add(&stream.namespace, QuotaDimension::StreamBytes, stream.bytes);
    }
    found.retain(|_, count| *count > 0);
    let mut counted = BTreeMap::new();
    for (namespace, usage) in rows::<Usages>(store, &()) {
        for dimension in COUNTED.into_iter().filter(|one| usage.of(*one) > 0) {
            counted.insert((namespace.clone(), dimension), usage.of(dimension));
        }
    }
    match found == counted {
        true => Vec::new(),
        false => vec![format!(
            "expected the counters of what namespaces use to be {found:?}, but they are {counted:?}"
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::rows::{KeyRecord, Table, UsageRecord, encode_key, encode_record};
    use flotilla_engine::store::Writes;

    fn put<T: Table>(store: &mut MemoryStore, key: &T::Key, record: &T::Record) {
        let row = (encode_key::<T>(key), Some(encode_record::<T>(record)));
        store.write(&Writes::from([row]));
    }

    /// A counter that a deleted key does not decrement.
    #[test]
    fn a_counter_that_is_not_decremented_is_found() {
        let mut store = MemoryStore::default();
        let namespace = Namespace::default_namespace();
        assert_eq!(check(&store), Vec::<String>::new());
        let usage = UsageRecord {
            counts: BTreeMap::from([(QuotaDimension::KvKeys, 1), (QuotaDimension::KvBytes, 2)]),
        };
        put::<Usages>(&mut store, &namespace, &usage);
        assert_eq!(check(&store).len(), 1);
        let key = flotilla_engine::ids::KvKey::new("k").expect("a key");
        let record = KeyRecord {
            value: flotilla_engine::bytes::Bytes::from("v"),
            version: 1,
            expires_at_ms: None,
            updated_at_ms: 1,
        };
        put::<Keys>(&mut store, &(namespace, key), &record);
        assert_eq!(check(&store), Vec::<String>::new());
    }
}
