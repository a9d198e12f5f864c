//! How large an input is with its defaults (W68).

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::json::Json;
use flotilla_engine::limits::PAYLOAD_BYTES_MAX;
use flotilla_engine::rows::{Runs, read};
use flotilla_engine::{Body, Rejection};

#[test]
fn an_input_that_is_too_large_with_its_defaults_starts_nothing() {
    let mut replica = Replica::new();
    let child = "define child 1 defaults={\"n\":1}\n start: wait go -> success=flo.Completed";
    let parent = "define parent 1\n start: run @workflow/child -> success=flo.Completed";
    for text in [child, parent] {
        let create = Box::new(samples::plain_revision(define(text)));
        let create = Body::CreateDefinition(create);
        replica.ask(create).expect("it is sound");
    }
    let input = |bytes: usize| {
        let empty = r#"{"a":""}"#.len();
        Json::from_checked(format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - empty)))
    };
    let defaults = r#","n":1"#.len();
    let mut start = |workflow: &str, bytes: usize| {
        replica.ask(Body::StartRun(samples::plain_start(workflow, input(bytes))))
    };
    let refused = start("child", PAYLOAD_BYTES_MAX - defaults + 1);
    assert!(
        matches!(refused, Err(Rejection::TooLarge { .. })),
        "{refused:?}"
    );
    start("child", PAYLOAD_BYTES_MAX - defaults).expect("it fits");
    start("parent", PAYLOAD_BYTES_MAX).expect("it has no defaults");
    let parent = read::<Runs>(&replica.store, &RunNumber(2));
    let parent = parent.expect("memory does not fail").expect("it has ended");
    let detail = parent.detail.expect("a reason");
    assert!(detail.contains("but the input has 10485"), "{detail}");
}
