//! No two open runs have the same target and input (W85).

use super::concurrency::Span;
use super::rows::rows;
use flotilla_engine::rows::{Runs, TargetHolders, TriggeredBy};
use flotilla_engine::store::MemoryStore;

/// The runs that the schedule starts have the same target and the same input.
pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let ticks = rows::<Runs>(store, &())
        .into_iter()
        .filter(|(_, run)| matches!(run.triggered_by, TriggeredBy::Schedule { .. }));
    let ticks = ticks.map(|(number, run)| Span::of(store, number, run.status.is_open()));
    let ticks: Vec<Span> = ticks.collect();
    // Runs have numbers in the order of their starts.
    let together = ticks
        .windows(2)
        .filter(|pair| pair[0].ended.is_none_or(|ended| ended > pair[1].started));
    let mut broken: Vec<String> = together
        .map(|pair| {
            let (first, second) = (pair[0].number.0, pair[1].number.0);
            format!("expected run {first} to end before run {second} starts, but it did not")
        })
        .collect();
    let mut runs = rows::<Runs>(store, &()).into_iter();
    let is_all_ended = runs.all(|(_, run)| !run.status.is_open());
    if is_all_ended && !rows::<TargetHolders>(store, &()).is_empty() {
        broken.push("expected no target to be held, since all runs have ended".to_owned());
    }
    broken
}
