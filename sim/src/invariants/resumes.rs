//! A run that is resumed, or begins with a step of another run, enters no step again that has succeeded (W89, W90). The
//! workflows have no loops; a block that is tried again executes its steps again.

use super::rows::{PastEvent, events_of, rows};
use flotilla_engine::rows::{EventKind, Runs};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let events = events_of(store, number, &run);
        let mut succeeded: Vec<&PastEvent> = Vec::new();
        for past in &events {
            let place = (past.scope(), past.step());
            match &past.event.kind {
                EventKind::StepStarted
                    if succeeded
                        .iter()
                        .any(|one| (one.scope(), one.step()) == place) =>
                {
                    broken.push(format!(
                        "expected no further visit of {} to {place:?}, which has succeeded",
                        run.id
                    ));
                }
                EventKind::StepRetry { .. } => succeeded.retain(|one| !one.is_below(past)),
                EventKind::StepTakenOver(result) if result.outcome.as_str() == "success" => {
                    succeeded.push(past);
                }
                EventKind::StepCompleted { outcome, .. } if outcome.as_str() == "success" => {
                    succeeded.push(past);
                }
                _ => {}
            }
        }
    }
    broken
}
