//! The visits shown to a span exporter agree with the history read forwards.

use crate::invariants::rows;
use flotilla_engine::definition::StepIndex;
use flotilla_engine::ids::{OutcomeName, RunNumber};
use flotilla_engine::rows::{EventKind, History, Runs};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view;
use std::collections::BTreeMap;

/// A visit: its step, when it began and ended, its outcome and how many attempts were begun.
type Visit = (StepIndex, u64, u64, Option<OutcomeName>, u32);

/// Panics unless each visit that ended in the entry is shown, once and as it was.
pub(super) fn expect_each_once(store: &MemoryStore, raft_index: u64) {
    for (number, run) in rows::<Runs>(store, &()) {
        let entries = raft_index..=raft_index;
        let found = view::steps_left(store, &run.namespace, &run.id, entries);
        let found = found.expect("memory does not fail").into_iter();
        let found: Vec<Visit> = found
            .map(|visit| {
                assert!(!visit.is_beginning_missing, "histories are short");
                let (step, entered_at_ms) = (visit.key.step, visit.key.entered_at_ms);
                let left_at_ms = visit.left_at_ms;
                (
                    step,
                    entered_at_ms,
                    left_at_ms,
                    visit.outcome,
                    visit.attempts,
                )
            })
            .collect();
        assert_eq!(found, ended_in(store, number, raft_index), "{}", run.id);
    }
}

fn ended_in(store: &MemoryStore, run: RunNumber, raft_index: u64) -> Vec<Visit> {
    // The open steps: since when, and at which attempt.
    let mut under_way: Vec<(StepIndex, u64, u32)> = Vec::new();
    // The attempts at their targets, of those whose fallback was invoked.
    let mut earlier: BTreeMap<StepIndex, u32> = BTreeMap::new();
    let mut ended = Vec::new();
    for (_, record) in rows::<History>(store, &run) {
        let mut end = |(step, entered_at_ms, attempts), outcome| {
            if record.raft_index == raft_index {
                ended.push((step, entered_at_ms, record.at_ms, outcome, attempts));
            }
        };
        for event in &record.events {
            let position = under_way.iter().position(|one| Some(one.0) == event.step);
            match (&event.kind, position) {
                (EventKind::StepStarted, None) => {
                    let step = event.step.expect("a step is entered");
                    under_way.push((step, record.at_ms, 1));
                    earlier.remove(&step);
                }
                (EventKind::StepRetry { attempt }, Some(position)) => {
                    let (step, ..) = under_way[position];
                    under_way[position].2 = earlier.get(&step).unwrap_or(&0) + attempt;
                }
                (EventKind::FallbackStarted { .. }, Some(position)) => {
                    let (step, _, attempts) = &mut under_way[position];
                    earlier.insert(*step, *attempts);
                    *attempts += 1;
                }
                (EventKind::StepCancelled, Some(position)) => {
                    let outcome = OutcomeName::new("cancelled").expect("an outcome");
                    end(under_way.remove(position), Some(outcome));
                }
                (EventKind::StepCompleted { outcome, .. }, Some(position)) => {
                    end(under_way.remove(position), Some(outcome.clone()));
                }
                (
                    EventKind::WorkflowCompleted { .. }
                    | EventKind::WorkflowFailed { .. }
                    | EventKind::WorkflowCancelled { .. }
                    | EventKind::WorkflowTimedOut { .. },
                    None,
                ) => {
                    under_way.sort_unstable();
                    under_way.drain(..).for_each(|one| end(one, None));
                }
                (EventKind::StepStarted | EventKind::StepCompleted { .. }, _) => {
                    panic!("{event:?} does not fit the open visits")
                }
                _ => {}
            }
        }
    }
    ended
}
