//! Every acknowledged command is in the final state exactly once; an unknown one at most once; and one
//! that certainly failed is not there.

use super::rows::rows;
use crate::record::{Events, Outcome};
use flotilla_engine::rows::{ActionRuns, EventKind, History, Runs};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{Body, RetryRun};
use std::collections::BTreeMap;

/// The requested commands, by a name that two commands share only if they request the same thing.
type Effects = BTreeMap<String, u64>;

pub(super) fn check(events: &Events, store: &MemoryStore) -> Vec<String> {
    let found = effects(store);
    let mut wanted: BTreeMap<String, Vec<&Outcome>> = BTreeMap::new();
    for operation in &events.operations {
        if let Some(name) = name(&operation.command.body) {
            wanted.entry(name).or_default().push(&operation.outcome);
        }
    }
    let mut broken = Vec::new();
    for (name, outcomes) in &wanted {
        let count = found.get(name).copied().unwrap_or(0);
        let is_acknowledged = outcomes
            .iter()
            .any(|o| matches!(o, Outcome::Acknowledged(_)));
        let may_be = outcomes.iter().any(|o| **o == Outcome::Unknown);
        let is_right = match count {
            0 => !is_acknowledged,
            1 => is_acknowledged || may_be,
            _ => false,
        };
        if !is_right {
            broken.push(format!("expected {name} once if it was answered, but it is there {count} times: {outcomes:?}"));
        }
    }
    let unasked = found.keys().filter(|name| !wanted.contains_key(*name));
    broken
        .extend(unasked.map(|name| {
            format!("expected no {name}, since it was not requested, but it is there")
        }));
    broken
}

/// What a command leaves behind, if it can be attributed to the command.
fn name(body: &Body) -> Option<String> {
    match body {
        Body::StartRun(start) | Body::RetryRun(RetryRun { start, .. }) => start
            .idempotency_key
            .as_ref()
            .map(|key| format!("run of {key}")),
        Body::InvokeAction(invoke) => {
            let key = invoke.idempotency_key.as_ref()?;
            Some(format!("action run of {key}"))
        }
        Body::SignalRun(signal) => signal.signal_id.as_ref().map(|id| format!("signal {id}")),
        _ => None,
    }
}

fn effects(store: &MemoryStore) -> Effects {
    let mut effects = Effects::new();
    let mut count = |name: String| *effects.entry(name).or_default() += 1;
    for (_, run) in rows::<Runs>(store, &()) {
        if let Some(key) = &run.idempotency_key {
            count(format!("run of {key}"));
        }
    }
    for (_, action_run) in rows::<ActionRuns>(store, &()) {
        if let Some(key) = &action_run.idempotency_key {
            count(format!("action run of {key}"));
        }
    }
    for (_, record) in rows::<History>(store, &()) {
        for event in record.events {
            if let EventKind::SignalReceived { id: Some(id), .. } = event.kind {
                count(format!("signal {id}"));
            }
        }
    }
    effects
}
