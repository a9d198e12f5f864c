//! Each record of the stream starts one run (W41).

use super::rows::rows;
use crate::record::{Events, Outcome};
use flotilla_engine::rows::{Runs, TriggeredBy};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{RecordId, Reply};
use std::collections::BTreeMap;

pub(super) fn check(events: &Events, store: &MemoryStore) -> Vec<String> {
    let mut started = BTreeMap::<RecordId, u64>::new();
    for (_, run) in rows::<Runs>(store, &()) {
        if let TriggeredBy::Trigger { first, .. } = run.triggered_by {
            *started.entry(first).or_default() += 1;
        }
    }
    let appended = events
        .operations
        .iter()
        .filter_map(|operation| match &operation.outcome {
            Outcome::Acknowledged(Reply::RecordsAppended(appended)) => Some(appended.first),
            _ => None,
        });
    for record in appended {
        started.entry(record).or_default();
    }
    let wrong = started.into_iter().filter(|(_, count)| *count != 1);
    wrong
        .map(|(record, count)| {
            format!("expected one run of the record {record}, but there are {count}")
        })
        .collect()
}
