//! Invariants of the plan tables.

use super::{read, rows};
use flotilla_engine::codec::fingerprint;
use flotilla_engine::definition::{Definition, Executor, Plan, RateWindow, RunTarget};
use flotilla_engine::ids::{Namespace, PlanName, PlanNumber, RunNumber, WorkflowName};
use flotilla_engine::limits::{
    CACHED_BYTES_MAX, CACHED_RESULTS_MAX, HEALTH_SAMPLES_MAX, RATE_SLICES,
};
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, BreakerState, CacheExpiries, CacheUsage,
    CachedResults, Cluster, Definitions, EventListing, PlanExecutorRecord, PlanExecutors,
    PlanNumbers, PlanRecord, PlanWait, Plans, PlansByEvent, Probe, RunRecord, TimerKey, TimerKind,
    Workflows,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

/// Panics unless the tables of plans agree with each other and with the runs.
pub(super) fn check(
    store: &MemoryStore,
    runs: &BTreeMap<RunNumber, RunRecord>,
    timers: &BTreeSet<TimerKey>,
) {
    let plans = rows::<Plans>(store, &());
    for (key, plan) in &plans {
        let known = read::<PlanNumbers>(store, &plan.number);
        assert_eq!(known.as_ref(), Some(key), "plan {} by its number", key.2);
        check_cache(store, plan.number, &plan.cache);
        if let Some(due_ms) = plan.cache.sweep_due_ms {
            let timer = sweep_timer(plan.number, due_ms);
            assert!(timers.contains(&timer), "plan {} is not swept", key.2);
        }
    }
    assert_eq!(rows::<PlanNumbers>(store, &()).len(), plans.len());
    let cluster = read::<Cluster>(store, &()).unwrap_or_default();
    // Those of deleted workflows are counted too.
    assert!(cluster.plan_count >= plans.len() as u64);
    for ((number, name), record) in rows::<PlanExecutors>(store, &()) {
        assert!(read::<PlanNumbers>(store, &number).is_some(), "{name}");
        check_bounds(&record);
        for probe in probes(&record) {
            let run = runs.get(&probe.run);
            let active = read::<Activations>(store, &(probe.run, probe.activation));
            let is_tried = |(run, active): (&RunRecord, &Activation)| {
                let definition = definition_of(store, run);
                let executor = tried(&definition, active);
                executor.is_some_and(|executor| executor.name == name)
            };
            let is_in_flight = run.zip(active.as_ref()).is_some_and(is_tried);
            assert!(is_in_flight, "{probe:?} of {name} is in flight");
        }
    }
    for ((number, _), active) in rows::<Activations>(store, &()) {
        check_execution(store, &runs[&number], &active);
    }
    check_events(store, &plans);
}

/// The index by event has what the latest revisions and those that executed a plan last list.
fn check_events(store: &MemoryStore, plans: &[((Namespace, WorkflowName, PlanName), PlanRecord)]) {
    let mut expected: BTreeMap<_, EventListing> = BTreeMap::new();
    for ((namespace, workflow), record) in rows::<Workflows>(store, &()) {
        let latest = read::<Definitions>(store, &record.latest).expect("a latest revision");
        for plan in latest.definition.plans {
            for event in plan.cache.into_iter().flat_map(|cache| cache.invalidate_on) {
                let key = (
                    namespace.clone(),
                    event,
                    workflow.clone(),
                    plan.name.clone(),
                );
                expected.entry(key).or_default().is_in_latest = true;
            }
        }
    }
    for ((namespace, workflow, name), record) in plans {
        let executed = read::<Definitions>(store, &record.last_executed).expect("a revision");
        let plan = executed.definition.plan_named(name).expect("its plan");
        for event in plan
            .cache
            .iter()
            .flat_map(|cache| cache.invalidate_on.iter())
        {
            let key = (
                namespace.clone(),
                event.clone(),
                workflow.clone(),
                name.clone(),
            );
            expected.entry(key).or_default().is_in_last_executed = true;
        }
    }
    let found = rows::<PlansByEvent>(store, &()).into_iter().collect();
    assert_eq!(expected, found, "plans by event");
}

/// Whether a plan's record says that it is swept when the timer is due.
pub(super) fn has_sweep(store: &MemoryStore, timer: &TimerKey) -> bool {
    let plans = rows::<Plans>(store, &());
    let mut plans = plans.iter().map(|(_, plan)| plan);
    plans.any(|plan| {
        let due_ms = plan.cache.sweep_due_ms;
        due_ms.is_some_and(|due_ms| *timer == sweep_timer(plan.number, due_ms))
    })
}

fn sweep_timer(plan: PlanNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::CacheExpiry,
        due_ms,
        subject: plan.0,
        detail: 0,
    }
}

/// What is stored is what the plan's record counts, and each result is known by its expiry.
fn check_cache(store: &MemoryStore, plan: PlanNumber, usage: &CacheUsage) {
    let results = rows::<CachedResults>(store, &plan);
    let bytes: usize = results
        .iter()
        .map(|(_, result)| result.output.as_str().len())
        .sum();
    assert_eq!(usage.results_count, results.len() as u64);
    assert_eq!(usage.bytes, bytes as u64);
    assert!(usage.results_count <= CACHED_RESULTS_MAX && usage.bytes <= CACHED_BYTES_MAX);
    let by_expiry: BTreeSet<(u64, u64)> = rows::<CacheExpiries>(store, &plan)
        .into_iter()
        .map(|((_, expires_at_ms, place), ())| (expires_at_ms, place))
        .collect();
    let expected = results.iter().map(|((_, place), result)| {
        assert_eq!(fingerprint(result.key.as_bytes()), *place);
        (result.expires_at_ms, *place)
    });
    assert_eq!(by_expiry, expected.collect());
    let oldest = by_expiry.first().map(|(expires_at_ms, _)| *expires_at_ms);
    assert!(oldest.is_none_or(|oldest_ms| usage.oldest_ms <= oldest_ms));
    assert_eq!(usage.sweep_due_ms.is_some(), !results.is_empty());
}

fn check_bounds(record: &PlanExecutorRecord) {
    assert!(record.samples.len() <= HEALTH_SAMPLES_MAX as usize);
    assert!(record.samples.is_sorted_by_key(|sample| sample.at_ms));
    for window in RateWindow::ALL {
        let calls = record.calls.get(&window).map_or(&[][..], Vec::as_slice);
        assert!(calls.len() <= 2 * RATE_SLICES as usize + 1);
        assert!(calls.is_sorted_by_key(|bucket| bucket.last_ms));
    }
}

fn probes(record: &PlanExecutorRecord) -> Vec<Probe> {
    match &record.breaker {
        BreakerState::HalfOpen { probes } => probes.clone(),
        BreakerState::Closed { .. } | BreakerState::Open { .. } => Vec::new(),
    }
}

/// An execution stands at one of its executors, each of which it tries at most once.
fn check_execution(store: &MemoryStore, run: &RunRecord, active: &Activation) {
    let ActivationState::Plan(state) = &active.state else {
        return;
    };
    let definition = definition_of(store, run);
    let plan = plan_of(&definition, active);
    let order: BTreeSet<u16> = state.order.iter().map(|index| index.0).collect();
    let all = u16::try_from(plan.executors.len()).expect("few executors");
    assert_eq!(order, (0..all).collect(), "{}: the order", run.id);
    assert_eq!(state.order.len(), order.len(), "{}: the order", run.id);
    assert!(state.executor().is_some(), "{}: the position", run.id);
    assert!(state.attempt >= 1);
    if matches!(state.wait, PlanWait::Retry { .. }) {
        assert!(state.attempt > 1 && state.failure.is_some(), "{}", run.id);
    }
}

/// The executor of the current attempt.
fn tried<'a>(definition: &'a Definition, active: &Activation) -> Option<&'a Executor> {
    let ActivationState::Plan(state) = &active.state else {
        return None;
    };
    let is_under_way = matches!(state.wait, PlanWait::Action(_));
    let index = state.executor().filter(|_| is_under_way)?;
    Some(plan_of(definition, active).executor(index))
}

fn plan_of<'d>(definition: &'d Definition, active: &Activation) -> &'d Plan {
    let call = definition.step(active.step).call(active.call);
    let RunTarget::Plan(plan) = call.expect("only run steps execute plans").target else {
        panic!("only steps that target a plan execute one");
    };
    definition.plan(plan)
}

fn definition_of(store: &MemoryStore, run: &RunRecord) -> Definition {
    let record = read::<Definitions>(store, &run.definition);
    record.expect("a run is pinned").definition
}
