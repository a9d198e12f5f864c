//! Concurrency keys (W84): a run holds all its keys or waits for all of them, and none waits that could begin.

use super::{read, rows};
use flotilla_engine::ids::{ConcurrencyKeyNumber, RunNumber};
use flotilla_engine::rows::{
    BoundIdempotencyKeys, ConcurrencyHolders, ConcurrencyKeyNumbers, ConcurrencyKeyRecord,
    ConcurrencyKeys, ConcurrencyPlace, ConcurrencyQueue, IdempotencyKeys, PendingWorks, Quarantine,
    QuarantinedKind, RunRecord, RunRemains, RunStatus, Runs, Table, Work,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

type Places = BTreeMap<(ConcurrencyKeyNumber, u64), RunNumber>;

/// Panics unless the keys, their holders and their queues agree with the runs.
pub(super) fn check(store: &MemoryStore) {
    let (holders, queues) = (
        places::<ConcurrencyHolders>(store),
        places::<ConcurrencyQueue>(store),
    );
    let (mut held, mut waiting) = (Places::new(), Places::new());
    for (number, run) in rows::<Runs>(store, &()) {
        let Some(own) = &run.start_limits.concurrency else {
            continue;
        };
        assert!(run.status.is_open(), "{}: an ended run has keys", run.id);
        let side = match own.is_held {
            true => &mut held,
            false => {
                assert_eq!(run.status, RunStatus::Pending, "{}: it waits", run.id);
                &mut waiting
            }
        };
        for place in &own.places {
            let replaced = side.insert((place.key, place.position), number);
            assert_eq!(replaced, None, "{}: a place is taken once", run.id);
        }
    }
    assert_eq!(holders, held, "the runs that hold keys");
    assert_eq!(queues, waiting, "the runs that wait for keys");
    check_keys(store, &holders, &queues);
    for (number, run) in rows::<Runs>(store, &()) {
        check_blocked(store, &queues, number, &run);
    }
}

fn places<T: Table<Key = (ConcurrencyKeyNumber, u64), Record = RunNumber>>(
    store: &MemoryStore,
) -> Places {
    rows::<T>(store, &()).into_iter().collect()
}

/// The counts and bounds of a key are those of its rows, and an unused key is deleted.
fn check_keys(store: &MemoryStore, holders: &Places, queues: &Places) {
    let mut numbers: BTreeMap<_, _> = rows::<ConcurrencyKeyNumbers>(store, &())
        .into_iter()
        .map(|(key, number)| (number, key))
        .collect();
    for (number, record) in rows::<ConcurrencyKeys>(store, &()) {
        assert_eq!(numbers.remove(&number), Some(record.key.clone()));
        let of = |all: &Places| -> Vec<u64> {
            let own = all.range((number, 0)..=(number, u64::MAX));
            own.map(|((_, position), _)| *position).collect()
        };
        let (holding, waiting) = (of(holders), of(queues));
        assert_eq!(record.holders_count as usize, holding.len());
        assert_eq!(record.waiting_count as usize, waiting.len());
        assert!(!holding.is_empty() || !waiting.is_empty(), "an unused key");
        assert!(holding.iter().all(|at| *at >= record.first_holder));
        assert!(waiting.iter().all(|at| *at >= record.first_waiting));
    }
    assert!(numbers.is_empty(), "numbers without a key: {numbers:?}");
}

/// A run that waits is blocked at one of its keys, unless work that lets it begin is deferred.
fn check_blocked(store: &MemoryStore, queues: &Places, number: RunNumber, run: &RunRecord) {
    let Some(awaited) = run.awaited_keys() else {
        return;
    };
    let is_quarantined =
        |run: RunNumber| read::<Quarantine>(store, &(QuarantinedKind::Run, run.0)).is_some();
    let takes_keys = |(_, work): &(_, Work)| matches!(work, Work::TakeKeys);
    let is_deferred = rows::<PendingWorks>(store, &number).iter().any(takes_keys);
    let is_free = |place: &ConcurrencyPlace| {
        let record: ConcurrencyKeyRecord =
            read::<ConcurrencyKeys>(store, &place.key).expect("a key that a run waits for");
        let mut queue = queues.range((place.key, 0)..=(place.key, u64::MAX));
        let first = queue.next().map(|((_, position), _)| *position);
        first == Some(place.position) && record.holders_count < place.limit
    };
    let is_blocked = !awaited.iter().all(is_free);
    assert!(
        is_blocked || is_deferred || is_quarantined(number),
        "{}: all its keys are free, but it waits",
        run.id
    );
}

/// An idempotency key is that of the run which it names, or is bound to it.
pub(super) fn check_idempotency_keys(store: &MemoryStore, runs: &BTreeMap<RunNumber, RunRecord>) {
    for ((namespace, workflow, key), number) in rows::<IdempotencyKeys>(store, &()) {
        let run = runs.get(&number);
        let is_own = run.is_some_and(|run| run.idempotency_key.as_ref() == Some(&key));
        let bound = read::<BoundIdempotencyKeys>(store, &(number, key.clone(), workflow));
        assert!(
            is_own || bound == Some(namespace),
            "{key} names run {}",
            number.0
        );
    }
    let mut counts: BTreeMap<RunNumber, u32> = BTreeMap::new();
    for ((number, _, _), _) in rows::<BoundIdempotencyKeys>(store, &()) {
        *counts.entry(number).or_default() += 1;
    }
    for (number, run) in runs {
        let count = counts.remove(number).unwrap_or_default();
        assert_eq!(
            run.start_limits.bound_keys_count, count,
            "{}: its bound keys",
            run.id
        );
    }
    for number in counts.keys() {
        let remains = read::<RunRemains>(store, number);
        assert!(remains.is_some(), "bound keys of run {}", number.0);
    }
}
