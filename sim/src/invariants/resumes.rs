//! A run that is resumed, or begins with a step of another run, does not re-enter a step that has succeeded (W89, W90). The
//! workflows have no loops. The steps of a block run again if the block is retried.

use super::rows::{PastEvent, events_of, rows};
use flotilla_engine::rows::{EventKind, Runs};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let events = events_of(store, number, &run);
        let mut succeeded = BTreeMap::new();
        for past in &events {
            let place = (past.scope(), past.step());
            let is_success = match &past.event.kind {
                EventKind::StepTakenOver(result) => result.outcome.as_str() == "success",
                EventKind::StepCompleted { outcome, .. } => outcome.as_str() == "success",
                EventKind::StepRetry { .. } => {
                    succeeded.retain(|_, one: &mut &PastEvent| !one.is_below(past));
                    false
                }
                EventKind::StepStarted if succeeded.contains_key(&place) => {
                    broken.push(format!(
                        "expected no further visit of {} to {place:?}, which has succeeded",
                        run.id
                    ));
                    false
                }
                _ => false,
            };
            if is_success {
                succeeded.insert(place, past);
            }
        }
    }
    broken
}
