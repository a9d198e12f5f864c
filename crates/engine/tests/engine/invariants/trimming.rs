//! A run keeps everything that its rows and its kept history refer to, and nothing else.

use super::{read, rows};
use flotilla_engine::ids::{ActionRunNumber, RunNumber};
use flotilla_engine::rows::{
    ActionRuns, ActionRunsByRun, ActivationState, Activations, EventKind, History, PayloadOwner,
    PayloadRef, Payloads, PayloadsHeld, PendingWorks, RunRecord, SignalsWaiting, StepResults,
    Trimming, Work,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

/// What the rows of a run name.
#[derive(Default)]
struct Named {
    payloads: BTreeSet<u64>,
    action_runs: BTreeSet<ActionRunNumber>,
}

pub(super) fn check(store: &MemoryStore, number: RunNumber, run: &RunRecord) {
    let mut named = Named::default();
    named.add(run.output);
    named.add([run.input]);
    let (end, fixed) = (run.end.as_ref(), run.fixed_end.as_ref());
    named.add(end.and_then(|end| end.error.as_deref().copied()));
    named.add(fixed.and_then(|end| end.error.as_deref().copied()));
    named.add(fixed.and_then(|end| end.cause));
    named.add_state(store, number);
    named.add_history(store, number);
    let by_run = action_runs(store, number, run);
    for action_run in by_run.keys() {
        let record = read::<ActionRuns>(store, action_run).expect("it is listed");
        named.add([record.input].into_iter().chain(record.output));
    }
    let missing = |one: &&ActionRunNumber| !by_run.contains_key(one);
    let missing: Vec<_> = named.action_runs.iter().filter(missing).collect();
    assert!(missing.is_empty(), "{} has lost {missing:?}", run.id);
    check_payloads(store, number, run, &named.payloads);
    check_swept(run, &by_run);
}

/// The action runs of a run, each with the event of its creation.
fn action_runs(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
) -> BTreeMap<ActionRunNumber, u64> {
    let mut found = BTreeMap::new();
    for ((_, first_event), record) in rows::<History>(store, &number) {
        let created = record.created_action_runs();
        found.extend(created.map(|(position, action_run)| (action_run, first_event + position)));
    }
    let cursor = &run.history;
    for ((_, action_run), event) in rows::<ActionRunsByRun>(store, &number) {
        // That of an iteration is not in the history; the row names an event near it (W57).
        assert!(event <= cursor.events_count + 1, "{action_run}");
        if let Some(in_history) = found.insert(action_run, event) {
            assert_eq!(in_history, event, "{action_run}");
            assert!(
                event <= cursor.trimming.after,
                "{action_run} is in the history"
            );
        }
    }
    found
}

fn check_payloads(store: &MemoryStore, number: RunNumber, run: &RunRecord, named: &BTreeSet<u64>) {
    let payloads = rows::<Payloads>(store, &PayloadOwner::Run(number)).into_iter();
    let payloads: BTreeSet<u64> = payloads.map(|(payload, _)| payload.position).collect();
    let held = rows::<PayloadsHeld>(store, &number).into_iter();
    let held: BTreeSet<u64> = held.map(|((_, position), _)| position).collect();
    let missing: Vec<_> = named.difference(&payloads).collect();
    assert!(missing.is_empty(), "{} has lost {missing:?}", run.id);
    assert!(held.is_subset(&payloads), "{} holds what is gone", run.id);
    let cursor = &run.history;
    let is_left = |position: &&u64| {
        cursor.trimming.head_payloads_count <= **position
            && **position < cursor.trimming.swept_payloads_count
    };
    let left: BTreeSet<u64> = payloads.iter().filter(is_left).copied().collect();
    assert!(left.is_subset(&held), "{} has {left:?} left", run.id);
    let next = payloads.last().map_or(0, |position| position + 1);
    assert!(next <= run.payloads_count, "{}", run.id);
}

/// What a sweep has passed by is named by the head of the history.
fn check_swept(run: &RunRecord, by_run: &BTreeMap<ActionRunNumber, u64>) {
    let Trimming {
        after,
        swept_action_runs,
        ..
    } = *run.history.trimming;
    for (number, first_event) in by_run.range(..=ActionRunNumber(swept_action_runs)) {
        assert!(*first_event <= after, "{} has {number} left", run.id);
    }
}

impl Named {
    fn add(&mut self, payloads: impl IntoIterator<Item = PayloadRef>) {
        self.payloads
            .extend(payloads.into_iter().map(|payload| payload.position));
    }

    fn add_state(&mut self, store: &MemoryStore, number: RunNumber) {
        for (_, active) in rows::<Activations>(store, &number) {
            self.add([active.input]);
            self.action_runs.extend(active.state.action_run());
            if let ActivationState::Plan(plan) = active.state {
                self.add(plan.failure.and_then(|failure| failure.output));
            }
        }
        for (_, result) in rows::<StepResults>(store, &number) {
            self.add(result.output);
        }
        for (_, signal) in rows::<SignalsWaiting>(store, &number) {
            self.add([signal.payload]);
        }
        for (_, work) in rows::<PendingWorks>(store, &number) {
            if let Work::FinishStep { target_result, .. } = work {
                self.add(target_result.output);
            }
        }
    }

    fn add_history(&mut self, store: &MemoryStore, number: RunNumber) {
        let records = rows::<History>(store, &number).into_iter();
        for event in records.flat_map(|(_, record)| record.events) {
            match event.kind {
                EventKind::WorkflowStarted { input: payload, .. }
                | EventKind::SignalReceived { payload, .. } => self.add([payload]),
                EventKind::StepCompleted { output, .. } => self.add(output),
                EventKind::AwaitingAction { action_run, .. }
                | EventKind::ActionStarted { action_run, .. }
                | EventKind::ActionRetryScheduled { action_run, .. }
                | EventKind::ActionCompleted { action_run, .. }
                | EventKind::AwaitingReport { action_run, .. } => {
                    self.action_runs.insert(action_run);
                }
                _ => {}
            }
        }
    }
}
