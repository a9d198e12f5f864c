//! What the tasks of a run have used is added up once for each attempt (W87). Each task uses another name.

use super::rows::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::limits::USAGE_SUMS_MAX;
use flotilla_engine::rows::{ActionRunOwner, ActionRunStatus, ActionRuns, RunUsages};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let sums: BTreeMap<RunNumber, BTreeMap<String, u32>> = rows::<RunUsages>(store, &())
        .into_iter()
        .map(|(run, sums)| (run, by_task(sums.own.as_str())))
        .collect();
    let mut broken = Vec::new();
    for (number, task) in rows::<ActionRuns>(store, &()) {
        let ActionRunOwner::Step { run, .. } = task.owner else {
            continue;
        };
        let of_run = sums.get(&run);
        let is_full = of_run.is_some_and(|sums| sums.len() == USAGE_SUMS_MAX);
        let counted = of_run.and_then(|sums| sums.get(&number.to_string()));
        let counted = counted.copied().unwrap_or_default();
        let is_missing = task.status == ActionRunStatus::Completed && counted == 0 && !is_full;
        if counted > task.attempt || is_missing {
            broken.push(format!(
                "expected at most {} attempts of {number} to be counted, and its last one if it has completed, but {counted} are",
                task.attempt
            ));
        }
    }
    broken
}

/// The attempts that are counted, by task.
fn by_task(sums: &str) -> BTreeMap<String, u32> {
    let fields = sums.trim_matches(['{', '}']).split(',');
    let fields = fields.filter_map(|field| field.split_once(':'));
    fields
        .map(|(name, count)| {
            let count = count.parse().expect("attempts are whole numbers");
            (name.trim_matches('"').to_owned(), count)
        })
        .collect()
}
