//! Quotas, and the counters of what namespaces and trees use (X38): they are a recount of all rows.

use super::{read, rows};
use flotilla_engine::ids::{Namespace, TreeName};
use flotilla_engine::rows::{
    ActionRunOwner, ActionRunStatus, ActionRuns, Actions, Cluster, Keys, Modules, Namespaces,
    QuotaWindows, Quotas, Runs, Schedules, StreamNames, Streams, Tokens, TreeUsages, Triggers,
    Usages, Workers, Workflows, WorkflowsBeingDeleted,
};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{CommandScope, DimensionKind, QuotaDimension, QuotaScope};
use std::collections::BTreeMap;

/// Slices of a window at most: those of a minute, and the one that leaves next.
const SLICES_MAX: usize = 65;

type Counts = BTreeMap<QuotaDimension, u64>;

pub(super) fn check(store: &MemoryStore) {
    check_quotas(store);
    let counted = recount(store);
    let stored: BTreeMap<Namespace, Counts> = rows::<Usages>(store, &())
        .into_iter()
        .map(|(namespace, usage)| (namespace, usage.counts))
        .collect();
    assert_eq!(stored, counted, "what namespaces use");
    let mut of_trees: BTreeMap<TreeName, Counts> = BTreeMap::new();
    let mut add = |namespace: &Namespace, dimension, count: u64| {
        if namespace.is_below_root() {
            let counts = of_trees.entry(namespace.tree()).or_default();
            *counts.entry(dimension).or_default() += count;
        }
    };
    for (namespace, counts) in &counted {
        for (dimension, count) in counts {
            add(namespace, *dimension, *count);
        }
    }
    for (namespace, _) in rows::<Namespaces>(store, &()) {
        add(&namespace, QuotaDimension::Namespaces, 1);
    }
    let stored: BTreeMap<TreeName, Counts> = rows::<TreeUsages>(store, &())
        .into_iter()
        .map(|(tree, usage)| (tree, usage.counts))
        .collect();
    assert_eq!(stored, of_trees, "what trees use");
}

/// Every namespace with a quota exists, no quota is empty, and only limited rates have windows.
fn check_quotas(store: &MemoryStore) {
    let cluster = read::<Cluster>(store, &()).unwrap_or_default();
    let quotas: BTreeMap<QuotaScope, _> = rows::<Quotas>(store, &()).into_iter().collect();
    assert_eq!(quotas.len() as u64, cluster.quotas_count);
    for (scope, quota) in &quotas {
        assert!(!quota.limits.is_empty(), "the quota of {scope} is empty");
        assert!(quota.version <= cluster.quota_versions_count);
        if let QuotaScope::Namespace(namespace) = scope {
            let is_listed = read::<Namespaces>(store, namespace).is_some();
            assert!(is_listed, "{namespace} has a quota and is not listed");
        }
    }
    for ((scope, dimension), window) in rows::<QuotaWindows>(store, &()) {
        assert_eq!(dimension.kind(), DimensionKind::Rate);
        let is_limited = quotas
            .get(&scope)
            .is_some_and(|quota| quota.limits.contains_key(&dimension));
        assert!(is_limited, "a window of {dimension} of {scope}");
        let slices = &window.slices;
        assert!(slices.is_sorted_by_key(|slice| slice.last_ms));
        assert!(!slices.is_empty() && slices.len() <= SLICES_MAX);
    }
}

/// What each namespace uses, from the rows themselves.
fn recount(store: &MemoryStore) -> BTreeMap<Namespace, Counts> {
    let mut counted: BTreeMap<Namespace, Counts> = BTreeMap::new();
    let mut add = |namespace: &Namespace, dimension, count: u64| {
        if count > 0 {
            let counts = counted.entry(namespace.clone()).or_default();
            *counts.entry(dimension).or_default() += count;
        }
    };
    for (_, run) in rows::<Runs>(store, &()) {
        let is_open = u64::from(run.status.is_open());
        add(&run.namespace, QuotaDimension::OpenRuns, is_open);
    }
    for (_, record) in rows::<ActionRuns>(store, &()) {
        let is_open = matches!(
            record.status,
            ActionRunStatus::Pending | ActionRunStatus::Running
        );
        let counts = is_open && record.owner == ActionRunOwner::Caller;
        add(
            &record.namespace,
            QuotaDimension::OpenActionRuns,
            u64::from(counts),
        );
    }
    for ((namespace, _), _) in rows::<Workflows>(store, &()) {
        add(&namespace, QuotaDimension::Workflows, 1);
    }
    for ((namespace, _), ()) in rows::<WorkflowsBeingDeleted>(store, &()) {
        add(&namespace, QuotaDimension::Workflows, 1);
    }
    for ((namespace, key), record) in rows::<Keys>(store, &()) {
        add(&namespace, QuotaDimension::KvKeys, 1);
        add(
            &namespace,
            QuotaDimension::KvBytes,
            record.counted_bytes(&key),
        );
    }
    for ((namespace, _), _) in rows::<StreamNames>(store, &()) {
        add(&namespace, QuotaDimension::Streams, 1);
    }
    for (_, stream) in rows::<Streams>(store, &()) {
        add(&stream.namespace, QuotaDimension::StreamBytes, stream.bytes);
    }
    for ((namespace, _), _) in rows::<Actions>(store, &()) {
        add(&namespace, QuotaDimension::Actions, 1);
    }
    for ((namespace, _), module) in rows::<Modules>(store, &()) {
        let bytes = module.bytes.len() as u64;
        add(&namespace, QuotaDimension::ModuleBytes, bytes);
    }
    for ((namespace, _), schedule) in rows::<Schedules>(store, &()) {
        let is_live = u64::from(schedule.live.is_some());
        add(&namespace, QuotaDimension::Schedules, is_live);
    }
    for ((namespace, ..), _) in rows::<Triggers>(store, &()) {
        add(&namespace, QuotaDimension::Triggers, 1);
    }
    for ((namespace, _), _) in rows::<Workers>(store, &()) {
        add(&namespace, QuotaDimension::Workers, 1);
    }
    for (_, token) in rows::<Tokens>(store, &()) {
        if let CommandScope::Namespace(namespace) = &token.scope {
            add(namespace, QuotaDimension::Tokens, 1);
        }
    }
    counted
}
