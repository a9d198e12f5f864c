//! Workflows and revisions at their bounds (W5): what a script would need thousands of definitions for.

use crate::invariants;
use crate::replica::Replica;
use crate::script::define;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::limits::{
    DEFINITION_BYTES_MAX, REVISIONS_BYTES_MAX, REVISIONS_MAX, SWEEP_ROWS_MAX, WORKFLOWS_MAX,
};
use flotilla_engine::rows::{
    DefinitionNumber, Definitions, Namespaces, WorkflowCounts, WorkflowRecord, Workflows,
    encode_key, encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{
    Body, CreateDefinition, DeleteWorkflow, Rejection, Reply, VersionChoice, WorkflowRejection,
    reply, view,
};

fn create(name: &str, version: u32, source: &str) -> Body {
    let text = format!("define {name} {version}\n start: wait go -> success=flo.Completed");
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: define(&text),
        source: source.to_owned(),
        make_latest: false,
    }))
}

fn name() -> WorkflowName {
    WorkflowName::new("order").expect("a name")
}

/// A replica whose workflow `order` has the given number of revisions of the given size in bytes.
fn with_revisions(revisions_count: u32, revisions_bytes: u64) -> Replica {
    let mut replica = Replica::new();
    let key = (Namespace::default_namespace(), name());
    let record = WorkflowRecord {
        is_enabled: true,
        latest: DefinitionNumber(1),
        revisions_count,
        revisions_bytes,
    };
    replica.store.write(&Writes::from([(
        encode_key::<Workflows>(&key),
        Some(encode_record::<Workflows>(&record)),
    )]));
    replica
}

fn is_created(reply: &Result<Reply, Rejection>) -> bool {
    matches!(reply, Ok(Reply::DefinitionCreated(_)))
}

#[test]
fn a_workflow_takes_no_more_revisions_than_it_may_have_and_keeps_those_that_it_has() {
    let mut replica = with_revisions(REVISIONS_MAX - 1, 0);
    assert!(is_created(&replica.ask(create("order", 1, "a"))));
    let refusal = Rejection::from(WorkflowRejection::RevisionsTooMany(name()));
    assert_eq!(replica.ask(create("order", 2, "b")), Err(refusal));
    assert!(is_created(&replica.ask(create("order", 1, "a"))));
    assert!(is_created(&replica.ask(create("other", 2, "b"))));
}

#[test]
fn the_texts_of_a_workflow_have_a_bound_together() {
    let source = "x".repeat(DEFINITION_BYTES_MAX);
    let mut replica = with_revisions(1, REVISIONS_BYTES_MAX - source.len() as u64);
    assert!(is_created(&replica.ask(create("order", 1, &source))));
    let refusal = Rejection::from(WorkflowRejection::RevisionsTooMany(name()));
    assert_eq!(replica.ask(create("order", 2, "b")), Err(refusal));
}

#[test]
fn a_namespace_takes_no_more_workflows_than_it_may_have() {
    let mut replica = Replica::new();
    let namespace = Namespace::default_namespace();
    replica.store.write(&Writes::from([(
        encode_key::<WorkflowCounts>(&namespace),
        Some(encode_record::<WorkflowCounts>(&(WORKFLOWS_MAX - 1))),
    )]));
    assert!(is_created(&replica.ask(create("order", 1, "a"))));
    let refusal = Rejection::from(WorkflowRejection::WorkflowsTooMany(namespace.clone()));
    assert_eq!(replica.ask(create("other", 1, "a")), Err(refusal));
    assert!(is_created(&replica.ask(create("order", 2, "b"))));
    let count = invariants::read::<WorkflowCounts>(&replica.store, &namespace);
    assert_eq!(count, Some(WORKFLOWS_MAX));
}

fn delete() -> Body {
    Body::DeleteWorkflow(DeleteWorkflow { workflow: name() })
}

fn deleted(is_found: bool, has_more: bool) -> Result<Reply, Rejection> {
    Ok(Reply::WorkflowDeleted(reply::WorkflowDeleted {
        is_found,
        has_more,
    }))
}

#[test]
fn a_workflow_is_deleted_in_batches_and_does_not_exist_from_the_first_one_on() {
    let mut replica = Replica::new();
    let namespace = Namespace::default_namespace();
    for version in 0..450 {
        assert!(is_created(&replica.ask(create("order", version, "a"))));
    }
    assert!(is_created(&replica.ask(create("other", 1, "a"))));
    for definitions_left in [250, 50, 0] {
        assert_eq!(replica.ask(delete()), deleted(true, true));
        assert!(replica.writes_count <= SWEEP_ROWS_MAX + 8);
        invariants::check(&replica.store);
        let definitions = invariants::rows::<Definitions>(&replica.store, &());
        assert_eq!(definitions.len(), definitions_left + 1);
        let found = view::workflow(&replica.store, &namespace, &name(), &VersionChoice::Latest);
        assert!(found.expect("memory does not fail").is_none());
        let refusal = Rejection::from(WorkflowRejection::BeingDeleted(name()));
        assert_eq!(replica.ask(create("order", 1, "a")), Err(refusal));
        // It still takes the place of a workflow.
        let count = invariants::read::<WorkflowCounts>(&replica.store, &namespace);
        assert_eq!(count, Some(2));
    }
    assert_eq!(replica.ask(delete()), deleted(true, false));
    assert_eq!(replica.ask(delete()), deleted(false, false));
    invariants::check(&replica.store);
    let count = invariants::read::<WorkflowCounts>(&replica.store, &namespace);
    assert_eq!(count, Some(1));
    assert!(replica.has::<Namespaces>(&namespace));
    let first = replica.ask(create("order", 1, "a"));
    assert!(matches!(first, Ok(Reply::DefinitionCreated(first)) if first.revision == 1));
}
