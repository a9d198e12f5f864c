//! The state of a run has what the tasks of its successful steps have written, and nothing that no completed task has
//! written (W66). Each task writes another key. A run that begins with a step of another one keeps the state that it has
//! taken over (W90).

use super::rows::{PastEvent, events_of, rows};
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActionRunOwner, ActionRunStatus, ActionRuns, Event, EventKind, History, Payloads, Runs, States,
    StoredPayload,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut completed = BTreeMap::<RunNumber, BTreeMap<u64, String>>::new();
    for (number, task) in rows::<ActionRuns>(store, &()) {
        if let ActionRunOwner::Step { run, activation } = task.owner
            && task.status == ActionRunStatus::Completed
        {
            let tasks = completed.entry(run).or_default();
            tasks.insert(activation, number.to_string());
        }
    }
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let tasks = completed.remove(&number).unwrap_or_default();
        let succeeded = SuccessfulTasks::of(&events_of(store, number, &run));
        let taken_over = taken_over(store, number);
        let kept = tasks
            .iter()
            .filter(|(one, _)| !succeeded.dropped.contains(one));
        let allowed = kept.map(|(_, key)| key).chain(&taken_over);
        let allowed: BTreeSet<&String> = allowed.collect();
        let expected = tasks
            .iter()
            .filter(|(one, _)| succeeded.visible.contains(one));
        let expected = expected.map(|(_, key)| key).chain(&taken_over);
        let written = written(store, number);
        let is_allowed = written.iter().all(|key| allowed.contains(key));
        if !is_allowed || expected.clone().any(|key| !written.contains(key)) {
            let expected: Vec<_> = expected.collect();
            broken.push(format!(
                "expected the state of {} to have {expected:?} and at most {allowed:?}, but it has {written:?}",
                run.id
            ));
        }
    }
    broken
}

/// The activations of a run whose steps have succeeded.
#[derive(Default)]
struct SuccessfulTasks {
    /// Those whose writes are in the state of the run: of top-level steps, and of steps in the branches of top-level steps
    /// that have succeeded.
    visible: BTreeSet<u64>,
    /// Those in an attempt at a block that was retried: their writes are dropped.
    dropped: BTreeSet<u64>,
}

impl SuccessfulTasks {
    fn of(events: &[PastEvent]) -> Self {
        let mut succeeded = Vec::new();
        let mut dropped = BTreeSet::new();
        for past in events {
            if let EventKind::StepRetry { .. } = past.event.kind {
                let within = succeeded.extract_if(.., |one: &mut &PastEvent| one.is_below(past));
                dropped.extend(within.filter_map(|one| one.event.activation));
            } else if is_success(&past.event) {
                succeeded.push(past);
            }
        }
        let own = succeeded.iter().filter(|past| past.scope().is_empty());
        let own: BTreeSet<&str> = own.map(|past| past.step()).collect();
        let visible = succeeded.iter().filter(|past| {
            let scope = past.scope();
            let outermost = scope.first();
            outermost.is_none_or(|(step, ..)| own.contains(step.as_str()))
        });
        Self {
            visible: visible.filter_map(|past| past.event.activation).collect(),
            dropped,
        }
    }
}

fn is_success(event: &Event) -> bool {
    match &event.kind {
        EventKind::StepCompleted { outcome, .. } => outcome.as_str() == "success",
        _ => false,
    }
}

/// The keys in the state of a run.
fn written(store: &MemoryStore, run: RunNumber) -> BTreeSet<String> {
    let states = rows::<States>(store, &run).into_iter();
    let own = states.filter(|((_, scope), _)| *scope == ScopeNumber::ROOT);
    own.flat_map(|(_, state)| keys(&state.object)).collect()
}

/// The keys in the state with which a run has begun.
fn taken_over(store: &MemoryStore, run: RunNumber) -> BTreeSet<String> {
    let records = rows::<History>(store, &run).into_iter();
    let events = records.flat_map(|(_, record)| record.events);
    let states = events.filter_map(|event| match event.kind {
        EventKind::StateRecorded { state } => Some(state),
        _ => None,
    });
    let payloads = states.flat_map(|state| rows::<Payloads>(store, &state));
    let texts = payloads.filter_map(|(_, payload)| match payload {
        StoredPayload::Text(text) => Some(text),
        StoredPayload::Parts(_) => None,
    });
    texts.flat_map(|text| keys(&text)).collect()
}

fn keys(object: &Json) -> Vec<String> {
    let words = object.as_str().split('"');
    let keys = words.filter(|word| word.starts_with("arun-"));
    keys.map(str::to_owned).collect()
}
