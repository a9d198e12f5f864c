//! Ended items are kept until their retention ends, and are deleted completely (W4).

use super::{by_action, read, rows};
use flotilla_engine::ids::{ActionRunNumber, RunNumber};
use flotilla_engine::limits::RETENTION_MS_DEFAULT;
use flotilla_engine::rows::{
    ActionRunKeys, ActionRunOwner, ActionRunRecord, ActionRuns, ActionRunsByRun, ActivationState,
    Activations, Cluster, Definitions, Expiration, Expirations, Expiring, History, PayloadOwner,
    PayloadRef, Payloads, PayloadsHeld, Quarantine, QuarantinedKind, RunRemains, Runs, SignalIds,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

/// Panics unless everything that ended expires, and every row belongs to something.
pub(super) fn check(store: &MemoryStore) {
    let action_runs: BTreeMap<_, _> = rows::<ActionRuns>(store, &()).into_iter().collect();
    check_expirations(store, &action_runs);
    check_by_run(store, &action_runs);
    check_owners(store, &action_runs);
}

/// Whether the payload's run is forgotten, so that only a sweep still finds it.
pub(super) fn is_forgotten(store: &MemoryStore, payload: PayloadRef) -> bool {
    match payload.owner {
        PayloadOwner::Run(run) => read::<RunRemains>(store, &run).is_some(),
        PayloadOwner::ActionRun(_) => false,
    }
}

fn check_expirations(
    store: &MemoryStore,
    action_runs: &BTreeMap<ActionRunNumber, ActionRunRecord>,
) {
    let mut expected = BTreeSet::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let definition = read::<Definitions>(store, &run.definition).expect("a run is pinned");
        let retention_ms = definition.definition.retention_ms;
        let due_ms = run.completed_at_ms;
        expected.extend(due_ms.map(|ended_ms| Expiration {
            due_ms: ended_ms + retention_ms.unwrap_or(RETENTION_MS_DEFAULT),
            subject: Expiring::Run(number),
        }));
    }
    for (number, record) in action_runs {
        let is_own = record.owner == ActionRunOwner::Caller;
        let due_ms = record.completed_at_ms.filter(|_| is_own);
        expected.extend(due_ms.map(|ended_ms| Expiration {
            due_ms: ended_ms + RETENTION_MS_DEFAULT,
            subject: Expiring::ActionRun(*number),
        }));
    }
    let found: BTreeSet<Expiration> = rows::<Expirations>(store, &())
        .into_iter()
        .map(|(expiration, ())| expiration)
        .collect();
    // Quarantined items are kept.
    let is_quarantined = |expiration: &&Expiration| {
        let quarantined = match expiration.subject {
            Expiring::Run(number) => (QuarantinedKind::Run, number.0),
            Expiring::ActionRun(number) => (QuarantinedKind::ActionRun, number.0),
        };
        let is_kept =
            is_awaited(store, expiration.subject) || is_retried(store, expiration.subject);
        is_kept || read::<Quarantine>(store, &quarantined).is_some()
    };
    assert!(found.is_subset(&expected), "what expires has ended");
    let from_ms = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.expirations_from_ms);
    let is_found = |expiration: &Expiration| expiration.due_ms >= from_ms;
    assert!(found.iter().all(is_found), "no sweep finds what expires");
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(
        missing.iter().all(is_quarantined),
        "{missing:?} do not expire"
    );
}

/// Whether the run ended while its parent was quarantined, so that the parent has yet to receive its result.
fn is_awaited(store: &MemoryStore, subject: Expiring) -> bool {
    let Expiring::Run(number) = subject else {
        return false;
    };
    let link = read::<Runs>(store, &number).and_then(|run| run.parent);
    link.is_some_and(|link| {
        let active = read::<Activations>(store, &(link.run, link.activation));
        let first = read::<Runs>(store, &number).map_or(number, |run| run.first_attempt(number));
        active.is_some_and(|active| active.state == ActivationState::Child(first))
    })
}

/// Whether it is the first attempt at a run of which the last one is kept (W77).
fn is_retried(store: &MemoryStore, subject: Expiring) -> bool {
    let Expiring::Run(number) = subject else {
        return false;
    };
    let chain = read::<Runs>(store, &number).and_then(|run| run.chain);
    let chain = chain.filter(|chain| chain.first == number && chain.latest != number);
    chain.is_some_and(|chain| read::<Runs>(store, &chain.latest).is_some())
}

/// Whether a run or its last attempt is open (W77).
pub(super) fn is_any_attempt_open(store: &MemoryStore, first: RunNumber) -> bool {
    let chain = read::<Runs>(store, &first).and_then(|run| run.chain);
    let latest = read::<Runs>(store, &chain.map_or(first, |chain| chain.latest));
    latest.is_some_and(|run| run.status.is_open())
}

/// Every action run of a step is found from its run, or from what is left of it.
fn check_by_run(store: &MemoryStore, action_runs: &BTreeMap<ActionRunNumber, ActionRunRecord>) {
    let listed = rows::<ActionRunsByRun>(store, &()).into_iter();
    let mut by_run: BTreeSet<_> = listed.map(|(key, _)| key).collect();
    for ((run, _), record) in rows::<History>(store, &()) {
        let created = record.created_action_runs();
        let kept = created.filter(|(_, number)| action_runs.contains_key(number));
        by_run.extend(kept.map(|(_, number)| (run, number)));
    }
    let of_steps = action_runs
        .iter()
        .filter_map(|(number, record)| match record.owner {
            ActionRunOwner::Step { run, .. } => Some((run, *number)),
            ActionRunOwner::Caller => None,
        });
    assert_eq!(by_run, of_steps.collect(), "action runs by run");
}

/// No row outlives what it belongs to.
fn check_owners(store: &MemoryStore, action_runs: &BTreeMap<ActionRunNumber, ActionRunRecord>) {
    let runs = rows::<Runs>(store, &()).into_iter();
    let mut known: BTreeSet<RunNumber> = runs.map(|(number, _)| number).collect();
    known.extend(
        rows::<RunRemains>(store, &())
            .into_iter()
            .map(|(number, _)| number),
    );
    for ((run, _), _) in rows::<History>(store, &()) {
        assert!(known.contains(&run), "history of run {}", run.0);
    }
    for ((run, position), _) in rows::<PayloadsHeld>(store, &()) {
        assert!(known.contains(&run), "payload {position} of run {}", run.0);
    }
    for ((run, id), _) in rows::<SignalIds>(store, &()) {
        assert!(known.contains(&run), "signal {id} of run {}", run.0);
    }
    for (payload, _) in rows::<Payloads>(store, &()) {
        let is_known = match payload.owner {
            PayloadOwner::Run(run) => known.contains(&run),
            PayloadOwner::ActionRun(number) => action_runs.contains_key(&number),
        };
        assert!(is_known, "{payload:?} belongs to nothing");
    }
    let by_action: BTreeSet<_> = by_action(store).into_iter().collect();
    let kept = action_runs.iter();
    let kept = kept.map(|(number, run)| (run.namespace.clone(), run.action.clone(), *number));
    assert_eq!(by_action, kept.collect(), "action runs by action");
    for ((_, _, key), number) in rows::<ActionRunKeys>(store, &()) {
        let record = action_runs.get(&number);
        assert_eq!(
            record.and_then(|record| record.idempotency_key.as_ref()),
            Some(&key)
        );
    }
}
