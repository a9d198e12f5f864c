//! Many approvals with long approvers and comments (W61).

use super::start;
use super::world::World;
use crate::invariants::rows;
use crate::script::define;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{Comment, RunId, RunNumber, ScopePathText};
use flotilla_engine::limits::{
    APPROVERS_BYTES_MAX, APPROVERS_MAX, COMMENT_BYTES_MAX, PAYLOAD_BYTES_MAX,
};
use flotilla_engine::rows::{Activations, History, RunStatus, encode_record};
use flotilla_engine::{Body, DecideApproval, StepSelector, view};

fn approve(scope: Option<String>, comment: String) -> Body {
    Body::DecideApproval(DecideApproval {
        run_id: RunId::generated(RunNumber(1)),
        selector: StepSelector {
            scope: scope.map(|path| ScopePathText::new(path).expect("a path")),
            ..StepSelector::default()
        },
        is_approved: true,
        comment: Some(Comment::new(comment).expect("a comment")),
    })
}

#[test]
fn hundreds_of_approvals_with_the_longest_approvers_open_in_bounded_records() {
    let mut world = World::new();
    let mut text = "define wide 1\n start: parallel -> success=flo.Completed".to_owned();
    for branch in 0..4 {
        text.push_str(&format!(
            "\n branch b{branch} of start single\n b{branch}: foreach items=$.input.items concurrency=100\n \
             branch i{branch} of b{branch} single\n i{branch}: approval by=$.input.by"
        ));
    }
    world.create(define(&text));
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let approver = |number| format!("\"user:{number:076}\"");
    let approvers: Vec<String> = (0..APPROVERS_MAX).map(approver).collect();
    // With the quotation marks, they have more.
    let bytes: usize = approvers.iter().map(String::len).sum();
    assert!((APPROVERS_BYTES_MAX..APPROVERS_BYTES_MAX + 200).contains(&bytes));
    let input = format!(
        "{{\"items\":[{}],\"by\":[{}]}}",
        numbers.join(","),
        approvers.join(",")
    );
    world.accept(start("wide", input));
    world.run_until_idle();
    let open = rows::<Activations>(&world.store, &RunNumber(1)).len();
    assert_eq!(open, 1 + 4 + 400);
    for (_, record) in rows::<History>(&world.store, &RunNumber(1)) {
        assert!(encode_record::<History>(&record).len() < 2 << 20);
    }
    let scope = "start/b3/b3[99]".to_owned();
    world.accept(approve(Some(scope), "fine".to_owned()));
}

#[test]
fn the_output_of_an_approval_with_the_longest_comments_is_a_payload() {
    let mut world = World::new();
    let text = "define long 1\n start: approval quorum=100 -> approved=flo.Completed";
    world.create(define(text));
    world.accept(start("long", "{}".to_owned()));
    for _ in 0..APPROVERS_MAX {
        world.accept(approve(None, "\"".repeat(COMMENT_BYTES_MAX)));
    }
    let run = world.run(1);
    assert_eq!(run.status, RunStatus::Ended(TerminalStatus::Completed));
    let output = view::payload(&world.store, run.output.expect("an output"));
    let bytes = output.expect("memory does not fail").as_str().len();
    assert!(bytes > APPROVERS_MAX * 2 * COMMENT_BYTES_MAX && bytes < PAYLOAD_BYTES_MAX);
    assert!(Comment::new("\u{1}").is_err());
}
