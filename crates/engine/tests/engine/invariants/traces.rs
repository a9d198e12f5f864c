//! A run belongs to a trace for as long as it is there, and its children belong to the same.

use super::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::tables::{RunRecord, RunTraces};
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore, runs: &BTreeMap<RunNumber, RunRecord>) {
    let traces: BTreeMap<_, _> = rows::<RunTraces>(store, &()).into_iter().collect();
    for number in traces.keys() {
        assert!(runs.contains_key(number), "the trace of run {}", number.0);
    }
    for (number, run) in runs {
        let parent = run.parent.map(|link| link.run);
        if let Some(parent) = parent.filter(|parent| runs.contains_key(parent)) {
            let (own, above) = (traces.get(number), traces.get(&parent));
            assert_eq!(own, above, "{} and its parent", run.id);
        }
    }
}
