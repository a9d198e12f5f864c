//! A run's children belong to the same trace as the run.

use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::RunRecord;
use std::collections::BTreeMap;

pub(super) fn check(runs: &BTreeMap<RunNumber, RunRecord>) {
    for run in runs.values() {
        let parent = run.parent.and_then(|link| runs.get(&link.run));
        if let Some(parent) = parent {
            assert_eq!(run.trace, parent.trace, "{} and its parent", run.id);
        }
    }
}
