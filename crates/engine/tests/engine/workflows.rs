//! Workflows and revisions at their bounds (W5): what a script would need thousands of definitions for.

use crate::invariants;
use crate::replica::Replica;
use crate::script::define;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::limits::{
    DEFINITION_BYTES_MAX, REVISIONS_BYTES_MAX, REVISIONS_MAX, WORKFLOWS_MAX,
};
use flotilla_engine::store::Writes;
use flotilla_engine::tables::{
    DefinitionNumber, WorkflowCounts, WorkflowRecord, Workflows, encode_key, encode_record,
};
use flotilla_engine::{Body, CreateDefinition, Rejection, Reply};

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
    let refusal = Rejection::RevisionsTooMany(name());
    assert_eq!(replica.ask(create("order", 2, "b")), Err(refusal));
    assert!(is_created(&replica.ask(create("order", 1, "a"))));
    assert!(is_created(&replica.ask(create("other", 2, "b"))));
}

#[test]
fn the_texts_of_a_workflow_have_a_bound_together() {
    let source = "x".repeat(DEFINITION_BYTES_MAX);
    let mut replica = with_revisions(1, REVISIONS_BYTES_MAX - source.len() as u64);
    assert!(is_created(&replica.ask(create("order", 1, &source))));
    let refusal = Rejection::RevisionsTooMany(name());
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
    let refusal = Rejection::WorkflowsTooMany(namespace.clone());
    assert_eq!(replica.ask(create("other", 1, "a")), Err(refusal));
    assert!(is_created(&replica.ask(create("order", 2, "b"))));
    let count = invariants::read::<WorkflowCounts>(&replica.store, &namespace);
    assert_eq!(count, Some(WORKFLOWS_MAX));
}
