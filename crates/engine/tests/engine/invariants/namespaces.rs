//! Whatever is kept lives in a namespace that is listed.

use super::{read, rows};
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::tables::{ActionRunsByAction, Actions, Keys, Namespaces, Workers, Workflows};

pub(super) fn check(store: &MemoryStore) {
    let check = |namespace: &Namespace| {
        let is_listed = read::<Namespaces>(store, namespace).is_some();
        assert!(is_listed, "{namespace} is used and not listed");
    };
    rows::<Workflows>(store, &())
        .iter()
        .for_each(|((namespace, _), _)| check(namespace));
    rows::<Actions>(store, &())
        .iter()
        .for_each(|((namespace, _), _)| check(namespace));
    rows::<ActionRunsByAction>(store, &())
        .iter()
        .for_each(|((namespace, ..), ())| check(namespace));
    rows::<Workers>(store, &())
        .iter()
        .for_each(|((namespace, _), _)| check(namespace));
    let now_ms = super::read::<flotilla_engine::tables::Cluster>(store, &())
        .map_or(0, |cluster| cluster.now_ms);
    let live = rows::<Keys>(store, &())
        .into_iter()
        .filter(|(_, record)| record.is_live(now_ms));
    live.for_each(|((namespace, _), _)| check(&namespace));
}
