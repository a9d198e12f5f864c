//! A firing of a schedule starts one run (W40).

use super::rows::rows;
use flotilla_engine::rows::{Runs, TriggeredBy};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut firings = BTreeMap::<u64, u64>::new();
    for (_, run) in rows::<Runs>(store, &()) {
        if let TriggeredBy::Schedule { firing_ms } = run.triggered_by {
            *firings.entry(firing_ms).or_default() += 1;
        }
    }
    let twice = firings.into_iter().filter(|(_, count)| *count > 1);
    twice
        .map(|(firing_ms, count)| {
            format!("expected one run of the firing at {firing_ms}, but there are {count}")
        })
        .collect()
}
