//! Info entries: each belongs to a run, which counts them (W92).

use super::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::limits::INFOS_MAX;
use flotilla_engine::rows::{Infos, RunRecord};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore, runs: &BTreeMap<RunNumber, RunRecord>) {
    for (number, run) in runs {
        let found: Vec<u32> = rows::<Infos>(store, number)
            .into_iter()
            .map(|((_, number), _)| number)
            .collect();
        let expected: Vec<u32> = (1..=run.infos_count).collect();
        assert_eq!(found, expected, "the info entries of {}", run.id);
        assert!(run.infos_count <= INFOS_MAX, "{}", run.id);
    }
}
