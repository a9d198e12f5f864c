//! Workers, their leases and their counts agree (A4, A20).

use super::{leases, read, rows};
use flotilla_engine::ids::{ActionRunNumber, Namespace, WorkerId, WorkerNumber};
use flotilla_engine::rows::{
    ActionRunOwner, ActionRunRecord, Cluster, GoneWorkers, LEASE_SUSPENDED_MS, Process, Quarantine,
    QuarantinedKind, SilentWorkers, TimerKey, TimerKind, WorkerActivities, WorkerActivityRecord,
    WorkerCounts, WorkerNumbers, WorkerProcesses, Workers,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

type WorkerKey = (Namespace, WorkerId);

/// Panics unless the tables of workers agree.
pub(super) fn check(
    store: &MemoryStore,
    action_runs: &BTreeMap<ActionRunNumber, ActionRunRecord>,
    timers: &BTreeSet<TimerKey>,
) {
    let workers: BTreeMap<_, _> = rows::<WorkerActivities>(store, &()).into_iter().collect();
    for (key, activity) in &workers {
        check_worker(store, key, activity);
        check_silence_timer(timers, key, activity);
        check_lease_timer(store, timers, activity);
    }
    check_indexes(store, &workers);
    check_gone(store, timers);
    for (number, place) in leases(store, &()) {
        let task = place.task;
        let lease = action_runs.get(&task).and_then(|run| run.lease.as_ref());
        let holder = lease.map(|lease| (lease.holder, lease.expires_at_ms));
        let listed = Some((number, place.expires_at_ms));
        assert_eq!(holder, listed, "{task} is listed, but not leased");
        let is_known = read::<WorkerNumbers>(store, &number).is_some()
            || read::<GoneWorkers>(store, &number).is_some();
        assert!(
            is_known || is_quarantined(store, task, &action_runs[&task]),
            "{task} is left under number {}, which no timer frees",
            number.0
        );
    }
}

/// The numbers of workers under which each leased task is listed.
pub(super) fn holders(store: &MemoryStore) -> BTreeMap<ActionRunNumber, Vec<WorkerNumber>> {
    let mut holders: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (number, place) in leases(store, &()) {
        holders.entry(place.task).or_default().push(number);
    }
    holders
}

/// Whether the task, or the run that it belongs to, is quarantined.
fn is_quarantined(store: &MemoryStore, number: ActionRunNumber, task: &ActionRunRecord) -> bool {
    let item = match task.owner {
        ActionRunOwner::Step { run, .. } => (QuarantinedKind::Run, run.0),
        ActionRunOwner::Caller => (QuarantinedKind::ActionRun, number.0),
    };
    read::<Quarantine>(store, &item).is_some()
}

/// Whether a silence timer belongs to a worker.
pub(super) fn is_watched(store: &MemoryStore, timer: &TimerKey) -> bool {
    read::<WorkerNumbers>(store, &WorkerNumber(timer.subject)).is_some()
}

/// Whether a worker has set a timer for its leases.
pub(super) fn are_leases_watched(store: &MemoryStore, timer: &TimerKey) -> bool {
    let worker = read::<WorkerNumbers>(store, &WorkerNumber(timer.subject));
    let activity = worker.and_then(|key| read::<WorkerActivities>(store, &key));
    activity.is_some_and(|activity| activity.lease_watch.due_ms == Some(timer.due_ms))
}

/// Whether a timer frees the leases of a worker that is gone.
pub(super) fn is_left(store: &MemoryStore, timer: &TimerKey) -> bool {
    let gone = read::<GoneWorkers>(store, &WorkerNumber(timer.subject));
    gone.is_some_and(|gone| gone.due_ms == timer.due_ms)
}

/// A worker is known by number and name, and counts its leases and what it has registered.
fn check_worker(store: &MemoryStore, key: &WorkerKey, activity: &WorkerActivityRecord) {
    let worker = read::<Workers>(store, key).expect("an activity has a worker");
    let known = read::<WorkerNumbers>(store, &activity.number);
    assert_eq!(known.as_ref(), Some(key), "{} by its number", key.1);
    let leases = leases(store, &activity.number);
    assert_eq!(activity.leases_count as usize, leases.len(), "{}", key.1);
    let registered: BTreeSet<Process> = worker.processes.into_iter().collect();
    let counted = rows::<WorkerProcesses>(store, key).into_iter();
    let counted = counted.map(|((.., process), _)| process);
    assert_eq!(counted.collect::<BTreeSet<_>>(), registered, "{}", key.1);
}

/// A healthy worker has exactly one silence timer.
fn check_silence_timer(
    timers: &BTreeSet<TimerKey>,
    (_, id): &WorkerKey,
    activity: &WorkerActivityRecord,
) {
    let is_own = |timer: &&TimerKey| {
        timer.kind == TimerKind::WorkerSilence && timer.subject == activity.number.0
    };
    let timers_count = timers.iter().filter(is_own).count();
    let expected = usize::from(activity.status.is_healthy());
    assert_eq!(timers_count, expected, "the silence timers of {id}");
}

/// No lease ends before the worker's bound, and a timer is set for the first one or earlier.
fn check_lease_timer(
    store: &MemoryStore,
    timers: &BTreeSet<TimerKey>,
    activity: &WorkerActivityRecord,
) {
    let watch = activity.lease_watch;
    let timer = watch.due_ms.map(|due_ms| TimerKey {
        kind: TimerKind::LeaseExpiry,
        due_ms,
        subject: activity.number.0,
        detail: 0,
    });
    let is_set = timer.is_some_and(|timer| timers.contains(&timer));
    assert_eq!(is_set, timer.is_some(), "the lease timer of {watch:?}");
    let leases = leases(store, &activity.number);
    let Some((_, first)) = leases.first() else {
        return;
    };
    assert!(
        watch.ends_from_ms <= first.expires_at_ms,
        "{watch:?}, {first:?}"
    );
    if first.expires_at_ms != LEASE_SUSPENDED_MS {
        // One that was restored late is overdue.
        let now_ms = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.now_ms);
        let latest_ms = first.expires_at_ms.max(now_ms);
        let is_in_time = watch.due_ms.is_some_and(|due_ms| due_ms <= latest_ms);
        assert!(is_in_time, "{watch:?}, {first:?}");
    }
}

/// Workers are counted by namespace, those that may be evicted are indexed, and no row is left of others.
fn check_indexes(store: &MemoryStore, workers: &BTreeMap<WorkerKey, WorkerActivityRecord>) {
    let mut counts: BTreeMap<Namespace, u64> = BTreeMap::new();
    let mut silent = BTreeSet::new();
    for ((namespace, id), activity) in workers {
        *counts.entry(namespace.clone()).or_default() += 1;
        if !activity.status.is_healthy() && activity.leases_count == 0 {
            silent.insert((namespace.clone(), activity.last_heartbeat_at_ms, id.clone()));
        }
    }
    let counted = rows::<WorkerCounts>(store, &());
    assert_eq!(counted.into_iter().collect::<BTreeMap<_, _>>(), counts);
    let listed = rows::<SilentWorkers>(store, &());
    let listed = listed.into_iter().map(|(key, ())| key);
    assert_eq!(listed.collect::<BTreeSet<_>>(), silent);
    assert_eq!(rows::<Workers>(store, &()).len(), workers.len());
    assert_eq!(rows::<WorkerNumbers>(store, &()).len(), workers.len());
    for ((namespace, id, process), _) in rows::<WorkerProcesses>(store, &()) {
        let name = process.name;
        assert!(workers.contains_key(&(namespace, id)), "{name} is left");
    }
}

/// A worker that is gone has no other row, and a timer that frees its leases from the first one on.
fn check_gone(store: &MemoryStore, timers: &BTreeSet<TimerKey>) {
    for (number, gone) in rows::<GoneWorkers>(store, &()) {
        let known = read::<WorkerNumbers>(store, &number);
        assert_eq!(known, None, "worker {} is gone and registered", number.0);
        let timer = TimerKey {
            kind: TimerKind::WorkerGone,
            due_ms: gone.due_ms,
            subject: number.0,
            detail: 0,
        };
        assert!(timers.contains(&timer), "worker {} is left", number.0);
        for (_, place) in leases(store, &number) {
            let task = place.task;
            assert!(place >= gone.next, "{task} of worker {} is left", number.0);
        }
    }
}
