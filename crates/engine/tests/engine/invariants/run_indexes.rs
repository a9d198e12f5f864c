//! The indexes of runs hold what the runs say, and nothing else (W22).

use super::{read, rows};
use flotilla_engine::rows::{
    AttributeKey, Definitions, Runs, RunsByAttribute, RunsByCompletion, RunsByStatus,
    RunsByWorkflow, Table, encode_key,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

/// Panics unless every run has its rows, and every row its run.
pub(super) fn check(store: &MemoryStore) {
    let mut expected = BTreeSet::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let definition = read::<Definitions>(store, &run.definition).expect("a run is pinned");
        let definition = definition.definition;
        let namespace = || run.namespace.clone();
        let by_workflow = (namespace(), definition.name.clone(), number);
        expected.insert(encode_key::<RunsByWorkflow>(&by_workflow));
        expected.insert(encode_key::<RunsByStatus>(&(
            namespace(),
            run.status,
            number,
        )));
        if let Some(at_ms) = run.completed_at_ms {
            expected.insert(encode_key::<RunsByCompletion>(&(
                namespace(),
                at_ms,
                number,
            )));
        }
        for (position, value) in &run.attributes {
            let name = definition.search_attributes[usize::from(*position)]
                .name
                .clone();
            let key = (namespace(), name, AttributeKey::new(value), number);
            expected.insert(encode_key::<RunsByAttribute>(&key));
        }
    }
    let indexes = [
        RunsByWorkflow::NUMBER,
        RunsByStatus::NUMBER,
        RunsByCompletion::NUMBER,
        RunsByAttribute::NUMBER,
    ];
    let found: BTreeSet<Vec<u8>> = store
        .rows()
        .filter(|(key, _)| indexes.contains(&key[0]))
        .map(|(key, _)| key.to_vec())
        .collect();
    assert_eq!(found, expected, "the indexes of runs");
}
