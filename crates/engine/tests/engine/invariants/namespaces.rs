//! Everything stored belongs to a namespace that is listed.

use super::{by_action, read, rows};
use flotilla_engine::ids::Namespace;
use flotilla_engine::rows::{
    Actions, Cluster, DeadLetterQueues, DeadLetters, Keys, Namespaces, Plans, RunsByWorkflow,
    Schedules, StreamNames, Triggers, Workers, Workflows, WorkflowsBeingDeleted,
};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(store: &MemoryStore) {
    let counted = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.namespaces_count);
    assert_eq!(counted, rows::<Namespaces>(store, &()).len() as u64);
    let check = |namespace: &Namespace| {
        let is_listed = read::<Namespaces>(store, namespace).is_some();
        assert!(is_listed, "{namespace} is used and not listed");
    };
    for ((namespace, _), _) in rows::<Workflows>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _), ()) in rows::<WorkflowsBeingDeleted>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _), _) in rows::<Actions>(store, &()) {
        check(&namespace);
    }
    for (namespace, ..) in by_action(store) {
        check(&namespace);
    }
    for ((namespace, _), _) in rows::<Workers>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _), _) in rows::<StreamNames>(store, &()) {
        check(&namespace);
    }
    for ((namespace, ..), ()) in rows::<RunsByWorkflow>(store, &()) {
        check(&namespace);
    }
    for ((namespace, ..), _) in rows::<Plans>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _), _) in rows::<Schedules>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _, _), _) in rows::<Triggers>(store, &()) {
        check(&namespace);
    }
    for ((namespace, ..), _) in rows::<DeadLetters>(store, &()) {
        check(&namespace);
    }
    for ((namespace, _), _) in rows::<DeadLetterQueues>(store, &()) {
        check(&namespace);
    }
    // An expired key may outlive its namespace until it is swept.
    let now_ms = read::<Cluster>(store, &()).map_or(0, |cluster| cluster.now_ms);
    for ((namespace, _), record) in rows::<Keys>(store, &()) {
        if record.is_live(now_ms) {
            check(&namespace);
        }
    }
}
