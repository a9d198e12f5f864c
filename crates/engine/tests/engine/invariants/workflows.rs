//! Workflows: each counts its revisions, and its rows are found by content, version and number (W5).

use super::{read, rows};
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::rows::{
    DefinitionSources, Definitions, Plans, Revisions, RevisionsByContent, Versions, WorkflowCounts,
    Workflows, WorkflowsBeingDeleted,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

/// A workflow counts its revisions, and a namespace its workflows.
pub(super) fn check(store: &MemoryStore) {
    let mut revisions: BTreeMap<_, (u32, u64)> = BTreeMap::new();
    for (number, record) in rows::<Definitions>(store, &()) {
        let source = read::<DefinitionSources>(store, &number).expect("its source");
        let counts = revisions
            .entry((record.namespace, record.definition.name))
            .or_default();
        counts.0 += 1;
        counts.1 += source.len() as u64;
    }
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for (key, workflow) in rows::<Workflows>(store, &()) {
        let counted = (workflow.revisions_count, workflow.revisions_bytes);
        assert_eq!(Some(counted), revisions.remove(&key), "{key:?}");
        *counts.entry(key.0).or_default() += 1;
    }
    for (key, ()) in rows::<WorkflowsBeingDeleted>(store, &()) {
        assert_eq!(read::<Workflows>(store, &key), None, "{key:?}");
        revisions.remove(&key);
        *counts.entry(key.0).or_default() += 1;
    }
    assert!(revisions.is_empty(), "revisions without a workflow");
    check_revisions(store);
    let counted = rows::<WorkflowCounts>(store, &());
    assert_eq!(counted.into_iter().collect::<BTreeMap<_, _>>(), counts);
}

/// Each revision is found by its content, and its rows are those of a workflow.
fn check_revisions(store: &MemoryStore) {
    let is_deleted =
        |key: &(Namespace, WorkflowName)| read::<WorkflowsBeingDeleted>(store, key).is_some();
    let known = |key: &(Namespace, WorkflowName)| {
        is_deleted(key) || read::<Workflows>(store, key).is_some()
    };
    let found = rows::<RevisionsByContent>(store, &()).into_iter();
    let found: BTreeSet<_> = found.map(|(key, ())| key.4).collect();
    let definitions = rows::<Definitions>(store, &()).into_iter();
    let definitions: BTreeSet<_> = definitions.map(|(number, _)| number).collect();
    assert_eq!(found, definitions, "revisions by content");
    let by_revision = rows::<Revisions>(store, &()).into_iter();
    let by_revision: BTreeSet<_> = by_revision.map(|(_, number)| number).collect();
    assert!(by_revision.is_superset(&definitions), "revisions by number");
    for ((namespace, workflow, version, revision), number) in rows::<Revisions>(store, &()) {
        let key = (namespace.clone(), workflow.clone());
        assert!(known(&key), "a revision of no workflow");
        let Some(record) = read::<Definitions>(store, &number) else {
            assert!(is_deleted(&key), "a revision without a definition");
            continue;
        };
        let definition = record.definition;
        let own = (
            record.namespace,
            definition.name,
            definition.version,
            record.revision,
        );
        assert_eq!(own, (namespace, workflow, version, revision));
    }
    let sources = rows::<DefinitionSources>(store, &()).into_iter();
    assert!(sources.map(|(number, _)| number).eq(definitions));
    for ((namespace, workflow, _), _) in rows::<Versions>(store, &()) {
        assert!(known(&(namespace, workflow)), "a version of no workflow");
    }
    for ((namespace, workflow, _), _) in rows::<Plans>(store, &()) {
        assert!(known(&(namespace, workflow)), "a plan of no workflow");
    }
}
