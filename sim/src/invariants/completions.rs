//! An acknowledged report ended its task, and no other report did.

use super::rows::rows;
use crate::record::{Events, Outcome};
use flotilla_engine::Body;
use flotilla_engine::ids::ActionRunNumber;
use flotilla_engine::rows::{ActionRunStatus, ActionRuns, EventKind, History};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(events: &Events, store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    let mut completed = BTreeMap::<ActionRunNumber, BTreeSet<u64>>::new();
    for operation in &events.operations {
        if let (Body::CompleteTask(complete), Outcome::Acknowledged(_)) =
            (&operation.command.body, &operation.outcome)
        {
            let token = complete.token;
            completed
                .entry(token.action_run)
                .or_default()
                .insert(token.secret);
        }
    }
    let status: BTreeMap<_, _> = rows::<ActionRuns>(store, &())
        .into_iter()
        .map(|(number, record)| (number, record.status))
        .collect();
    for (number, secrets) in &completed {
        let found = status.get(number);
        if secrets.len() > 1 || found != Some(&ActionRunStatus::Completed) {
            broken.push(format!(
                "expected one report to complete {number}, but {} were accepted and it is {found:?}",
                secrets.len()
            ));
        }
    }
    let mut ends = BTreeMap::<ActionRunNumber, u64>::new();
    for (_, record) in rows::<History>(store, &()) {
        for event in record.events {
            if let EventKind::ActionCompleted { action_run, .. } = event.kind {
                *ends.entry(action_run).or_default() += 1;
            }
        }
    }
    let twice = ends.into_iter().filter(|(_, count)| *count > 1);
    broken.extend(twice.map(|(number, count)| {
        format!("expected {number} to end once, but its run says {count} times that it did")
    }));
    broken
}
