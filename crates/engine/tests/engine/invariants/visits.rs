//! What a run says of when it entered and left its steps is what its history says.

use flotilla_engine::ids::RunNumber;
use flotilla_engine::tables::{EventKind, HistoryRecord, RunRecord};
use std::collections::BTreeMap;

pub(super) fn check(run: &RunRecord, history: &[((RunNumber, u64), HistoryRecord)]) {
    let (mut entered, mut left) = (BTreeMap::new(), BTreeMap::new());
    for ((_, first), record) in history {
        if run.history.trimmed_until > 0 && *first == run.history.trimmed_until + 1 {
            // Steps may have been entered and left in what was trimmed.
            entered.clear();
            left.clear();
        }
        for event in &record.events {
            let Some(step) = event.step else {
                continue;
            };
            match event.kind {
                EventKind::StepStarted => {
                    entered.insert(step, record.at_ms);
                }
                EventKind::StepCompleted { .. } => {
                    left.insert(step, (entered.remove(&step), record.at_ms));
                }
                _ => {}
            }
        }
    }
    for active in &run.active {
        let entered_at_ms = entered.get(&active.step);
        let is_alike = entered_at_ms.is_none_or(|at_ms| *at_ms == active.started_at_ms);
        assert!(is_alike, "when {} entered {:?}", run.id, active.step);
    }
    for (step, (entered_at_ms, left_at_ms)) in left {
        let result = &run.results[&step];
        assert_eq!(result.completed_at_ms, left_at_ms, "{} {step:?}", run.id);
        if let Some(at_ms) = entered_at_ms {
            assert_eq!(result.started_at_ms, at_ms, "{} {step:?}", run.id);
        }
    }
    // As many as were entered and not left were under way when the run ended.
    let left_count = run.results.values().map(|result| result.order).max();
    let under_way_count = run.activations_count - left_count.unwrap_or(0);
    let active_count = run.active.len();
    let is_counted = !run.status.is_open() || active_count == under_way_count as usize;
    assert!(is_counted, "{}: {active_count} steps are active", run.id);
}
