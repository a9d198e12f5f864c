//! Targets and locks (W85): open runs hold theirs, no others do, and no run is open whose target another one had locked
//! before.

use super::{read, rows};
use flotilla_engine::definition::LockSource;
use flotilla_engine::ids::{LockNumber, Namespace, RunNumber};
use flotilla_engine::limits::{OPEN_LOCKS_INSTRUCTIONS_MAX, OPEN_LOCKS_MAX};
use flotilla_engine::rows::{
    Activation, ActivationState, Definitions, Exclusion, ExclusionRecord, Exclusions, LockCounts,
    LockHolders, Locks, OpenLocks, Phase, RunRecord, RunStatus, Runs, SchemaChecks, TargetHolders,
};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view::{LOCKS_CHECK, RUN_OUTPUT_CHECK};
use std::collections::{BTreeMap, BTreeSet};

type Holders = BTreeMap<(LockNumber, u64), RunNumber>;

/// Panics unless the rows of targets and locks agree with the runs.
pub(super) fn check(store: &MemoryStore) {
    let runs: BTreeMap<RunNumber, RunRecord> = rows::<Runs>(store, &()).into_iter().collect();
    let mut own: BTreeMap<RunNumber, ExclusionRecord> =
        rows::<Exclusions>(store, &()).into_iter().collect();
    let mut targets: BTreeMap<(Namespace, [u8; 32]), BTreeSet<RunNumber>> = BTreeMap::new();
    let mut held = Holders::new();
    for (number, run) in &runs {
        let id = &run.id;
        let Some(exclusion) = &run.start_limits.exclusion else {
            continue;
        };
        let own = own.remove(number);
        let own = own.unwrap_or_else(|| panic!("{id}: its target and locks are kept"));
        assert_eq!(
            run.status.is_open(),
            *exclusion != Exclusion::Released,
            "{id}: an open run holds its target and locks"
        );
        for place in places(store, *number, run, &own) {
            let replaced = held.insert(place, *number);
            assert_eq!(replaced, None, "{id}: a place is taken once");
        }
        if let Some(target) = own.target.filter(|_| run.status.is_open()) {
            let key = (run.namespace.clone(), target.digest);
            targets.entry(key).or_default().insert(*number);
        }
    }
    assert!(own.is_empty(), "targets and locks without a run: {own:?}");
    let holders: Holders = rows::<LockHolders>(store, &()).into_iter().collect();
    assert_eq!(holders, held, "the runs that hold locks");
    check_counts(store, &holders);
    check_targets(store, &runs, targets);
    check_locked(store, &runs, &holders);
}

/// The places of a run at its locks, which must be those of its patterns.
fn places(
    store: &MemoryStore,
    number: RunNumber,
    run: &RunRecord,
    own: &ExclusionRecord,
) -> Vec<(LockNumber, u64)> {
    let id = &run.id;
    let is_requested = read::<SchemaChecks>(store, &(number, LOCKS_CHECK)).is_some();
    // The end of a run whose locks were refused may be deferred.
    let may_be_refused = run.continuation.is_some();
    let is_expected = is_requested || may_be_refused;
    assert!(!run.awaits_locks() || is_expected, "{id}: its locks");
    assert!(run.awaits_locks() || !is_requested, "{id}: its locks");
    let locks = match &run.start_limits.exclusion {
        Some(Exclusion::Held { locks }) => locks,
        Some(Exclusion::Compiling) => {
            assert_eq!(run.status, RunStatus::Pending, "{id}: it waits");
            return Vec::new();
        }
        Some(Exclusion::Released) | None => return Vec::new(),
    };
    let patterns = locks.iter().map(|place| {
        let lock = read::<Locks>(store, &place.lock).expect("a lock that is held");
        lock.pattern
    });
    let patterns: BTreeSet<String> = patterns.collect();
    let wanted: BTreeSet<String> = own.patterns.iter().cloned().collect();
    assert_eq!(patterns, wanted, "{id}: its locks");
    let places = locks.iter().map(|place| (place.lock, place.position));
    places.collect()
}

/// The counts of a lock are those of its rows, an unused lock is deleted, and a namespace has a bounded number of them.
fn check_counts(store: &MemoryStore, holders: &Holders) {
    let mut counts: BTreeMap<_, _> = rows::<LockCounts>(store, &()).into_iter().collect();
    let mut programs: BTreeMap<_, _> = rows::<Locks>(store, &()).into_iter().collect();
    for (namespace, open) in rows::<OpenLocks>(store, &()) {
        assert!(!open.is_empty(), "{namespace}: no lock is open");
        assert!(open.len() <= OPEN_LOCKS_MAX, "{namespace}: its locks");
        let mut instructions = 0;
        let mut patterns = BTreeSet::new();
        for open in open {
            let count = counts.remove(&open.number).expect("the count of a lock");
            let lock = programs.remove(&open.number).expect("an open lock");
            assert_eq!(
                lock.program.instructions.len(),
                open.instructions_count as usize
            );
            instructions += lock.program.instructions.len();
            assert!(patterns.insert(lock.pattern), "a lock is open once");
            let own = holders.range((open.number, 0)..=(open.number, u64::MAX));
            let own: Vec<u64> = own.map(|((_, position), _)| *position).collect();
            assert_eq!(count.holders_count, own.len() as u64);
            assert!(!own.is_empty(), "an unused lock");
            assert!(own.iter().all(|at| *at >= count.first_holder));
            assert!(own.iter().all(|at| *at < count.next_position));
        }
        assert!(instructions <= OPEN_LOCKS_INSTRUCTIONS_MAX, "{namespace}");
    }
    assert!(counts.is_empty(), "counts without a lock: {counts:?}");
    assert!(programs.is_empty(), "locks that are not open");
}

/// Runs with the same target and input are open together only if each is above the next one.
fn check_targets(
    store: &MemoryStore,
    runs: &BTreeMap<RunNumber, RunRecord>,
    wanted: BTreeMap<(Namespace, [u8; 32]), BTreeSet<RunNumber>>,
) {
    let found = rows::<TargetHolders>(store, &()).into_iter();
    let found: BTreeMap<_, Vec<RunNumber>> = found.collect();
    for holders in found.values() {
        for pair in holders.windows(2) {
            assert!(
                is_above(runs, pair[0], pair[1]),
                "runs {} and {} have the same target and input",
                pair[0].0,
                pair[1].0
            );
        }
    }
    let found = found.into_iter();
    let found = found.map(|(key, holders)| (key, holders.into_iter().collect()));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), wanted);
}

fn is_above(runs: &BTreeMap<RunNumber, RunRecord>, upper: RunNumber, lower: RunNumber) -> bool {
    let mut next = runs.get(&lower).and_then(|run| run.parent);
    while let Some(link) = next {
        if link.run == upper {
            return true;
        }
        next = runs.get(&link.run).and_then(|run| run.parent);
    }
    false
}

/// A run whose target matches a lock started before the run that holds it, or below it. Locks that are computed are held
/// from a later time on, so they are not compared.
fn check_locked(store: &MemoryStore, runs: &BTreeMap<RunNumber, RunRecord>, holders: &Holders) {
    let has_computed = |run: &RunRecord| {
        let record = read::<Definitions>(store, &run.definition).expect("a run is pinned");
        let mut locks = record.definition.locks.iter();
        locks.any(|lock| matches!(lock, LockSource::Computed(_)))
    };
    let targets = runs.iter().filter(|(_, run)| run.status.is_open());
    let targets: Vec<_> = targets
        .filter_map(|(number, run)| {
            let own = run
                .start_limits
                .exclusion
                .as_ref()
                .and_then(|_| read::<Exclusions>(store, number));
            Some((*number, run, own?.target?.text))
        })
        .collect();
    for ((lock, _), holder) in holders {
        let of_holder = &runs[holder];
        // Later runs may have started before it was resumed.
        if has_computed(of_holder) || of_holder.resumption.resumes_count > 0 {
            continue;
        }
        let lock = read::<Locks>(store, lock).expect("a lock that is held");
        for (number, run, target) in &targets {
            let is_later = run.first_attempt(*number) > of_holder.first_attempt(*holder);
            let is_matched = run.namespace == of_holder.namespace && lock.program.is_match(target);
            assert!(
                !is_later || !is_matched || is_above(runs, *holder, *number),
                "{}: its target {target} was locked by {}",
                run.id,
                of_holder.id
            );
        }
    }
}

/// Whether a run waits for something before it begins.
pub(super) fn is_delayed(run: &RunRecord) -> bool {
    run.timers.starts_at_ms.is_some() || run.awaited_keys().is_some() || run.awaits_locks()
}

/// Whether the check of the output of a run is requested.
pub(super) fn awaits_output_check(store: &MemoryStore, number: RunNumber) -> bool {
    read::<SchemaChecks>(store, &(number, RUN_OUTPUT_CHECK)).is_some()
}

/// What a check is requested for waits for it.
pub(super) fn check_requests(
    store: &MemoryStore,
    activations: &BTreeMap<(RunNumber, u64), Activation>,
) {
    let requested = rows::<SchemaChecks>(store, &()).into_iter();
    let of_steps = requested.filter(|((_, activation), ())| *activation != LOCKS_CHECK);
    for (at, ()) in of_steps {
        if at.1 == RUN_OUTPUT_CHECK {
            let end = read::<Runs>(store, &at.0).and_then(|run| run.fixed_end);
            assert_eq!(end.map(|end| end.phase), Some(Phase::CheckingOutput));
            continue;
        }
        let state = activations.get(&at).map(|active| &active.state);
        assert!(matches!(
            state,
            Some(ActivationState::ChildInput { .. } | ActivationState::OutputCheck(_))
        ));
    }
}
