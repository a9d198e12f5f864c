//! Histories have no gaps: every event of a run exists, and has the next number.

use super::rows::rows;
use flotilla_engine::rows::{EventKind, History, Runs};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let mut last = 0;
        let mut at_ms = 0;
        let mut ends_count = 0;
        for ((_, first), record) in rows::<History>(store, &number) {
            if first != last + 1 || record.at_ms < at_ms {
                broken.push(format!(
                    "expected event {} of {} next and not before {at_ms}, but found {first} at {}",
                    last + 1,
                    run.id,
                    record.at_ms
                ));
            }
            last = first + record.events.len() as u64 - 1;
            at_ms = record.at_ms;
            ends_count += record
                .events
                .iter()
                .filter(|event| is_end(&event.kind))
                .count();
        }
        let is_ended = !run.status.is_open();
        // A run that is resumed ends once more.
        let expected_ends = run.resumption.resumes_count as usize + usize::from(is_ended);
        if last != run.history.events_count || ends_count != expected_ends {
            broken.push(format!(
                "expected {} events of {} and {expected_ends} ends, but found {last} and {ends_count}",
                run.history.events_count, run.id
            ));
        }
    }
    broken
}

pub(super) fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::WorkflowCompleted { .. }
            | EventKind::WorkflowFailed { .. }
            | EventKind::WorkflowCancelled { .. }
            | EventKind::WorkflowTimedOut { .. }
    )
}
