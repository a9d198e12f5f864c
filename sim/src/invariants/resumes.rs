//! A run that is resumed, or begins with a step of another run, enters no step again that has succeeded (W89, W90). The
//! workflows have no loops.

use super::rows::{events_of, rows};
use flotilla_engine::rows::{EventKind, Runs};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let mut succeeded = BTreeSet::new();
        for past in events_of(store, number, &run) {
            let place = (past.scope(), past.step().to_owned());
            match &past.event.kind {
                EventKind::StepStarted if succeeded.contains(&place) => broken.push(format!(
                    "expected no further visit of {} to {place:?}, which has succeeded",
                    run.id
                )),
                EventKind::StepTakenOver(result) if result.outcome.as_str() == "success" => {
                    succeeded.insert(place);
                }
                EventKind::StepCompleted { outcome, .. } if outcome.as_str() == "success" => {
                    succeeded.insert(place);
                }
                _ => {}
            }
        }
    }
    broken
}
