//! A run's counters of entered and left steps agree with its history.

use super::{read, rows};
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    Activations, Definitions, EventKind, HistoryRecord, RunRecord, StepResults,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    history: &[((RunNumber, u64), HistoryRecord)],
) {
    let (mut entered, mut left) = (BTreeMap::new(), BTreeMap::new());
    for ((_, first), record) in history {
        if run.history.trimming.until > 0 && *first == run.history.trimming.until + 1 {
            // Steps may have been entered and left in what was trimmed.
            entered.clear();
            left.clear();
        }
        for event in &record.events {
            let Some(step) = event.step else {
                continue;
            };
            let place = (event.scope.number, step);
            match event.kind {
                EventKind::StepStarted => {
                    entered.insert(place, record.at_ms);
                }
                EventKind::StepCompleted { .. } => {
                    left.insert(place, (entered.remove(&place), record.at_ms));
                }
                EventKind::StepCancelled => {
                    entered.remove(&place);
                }
                _ => {}
            }
        }
    }
    let active = rows::<Activations>(store, &number);
    for (_, active) in &active {
        let entered_at_ms = entered.get(&(active.scope, active.step));
        let is_alike = entered_at_ms.is_none_or(|at_ms| *at_ms == active.started_at_ms);
        assert!(is_alike, "when {} entered {:?}", run.id, active.step);
    }
    for ((scope, step), (entered_at_ms, left_at_ms)) in left {
        let result = read::<StepResults>(store, &(number, scope, step));
        // The results of branches are deleted when their step is entered again.
        if scope != ScopeNumber::ROOT && result.is_none() {
            continue;
        }
        let result = result.expect("a step that was left has a result");
        assert_eq!(result.completed_at_ms, left_at_ms, "{} {step:?}", run.id);
        if let Some(at_ms) = entered_at_ms {
            assert_eq!(result.started_at_ms, at_ms, "{} {step:?}", run.id);
        }
    }
    // The steps that were entered and not left were active when the run ended.
    let results = rows::<StepResults>(store, &number);
    let definition = read::<Definitions>(store, &run.definition).expect("a run is pinned");
    let of_run = results.iter().filter(|((_, scope, step), _)| {
        *scope == ScopeNumber::ROOT && definition.definition.step(*step).has_output()
    });
    let left_last = of_run.max_by_key(|(_, result)| result.order);
    let last = left_last.map(|((_, _, step), _)| *step);
    assert_eq!(run.progress.last_left, last, "what {} left last", run.id);
    let orders = results.iter().map(|(_, result)| result.order);
    assert!(orders.max() <= Some(run.left_count), "{}", run.id);
    let under_way_count = run.activations_count - run.left_count;
    let active_count = active.len();
    assert_eq!(run.active_count as usize, active_count, "{}", run.id);
    let is_counted = !run.status.is_open() || active_count as u64 == under_way_count;
    assert!(is_counted, "{}: {active_count} steps are active", run.id);
}
