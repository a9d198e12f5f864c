//! W61: steps that ask for a decision.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_dsl::{ReferenceTarget, parse, unregistered};
use flotilla_engine::definition::{ApprovalStep, StepKind};

fn approvals(body: &str) -> Vec<ApprovalStep> {
    let steps = accept_body(body).steps.into_iter();
    let approval = |kind| match kind {
        StepKind::Approval(approval) => Some(approval),
        _ => None,
    };
    steps.filter_map(|step| approval(step.kind)).collect()
}

#[test]
fn a_step_asks_for_a_decision() {
    let approvals = approvals(
        r#"
steps:
  - {name: anyone, approval: {timeout: P1D}}
  - {name: some, approval: {approvers: ["user:ada", "user:bob", "role:ops"], quorum: 4, timeoutMs: 5}}
  - {name: path, approval: {approvers: $.input.by, quorum: 2, timeout_ms: 5}}
  - {name: cel, approval: {approvers: {cel: "['role:' + input.team]"}, timeout: 1h}, set: {by: $.result.actor}}
"#,
    );
    let shown: Vec<(u16, Option<u64>)> = approvals
        .iter()
        .map(|approval| (approval.quorum, approval.timeout_ms))
        .collect();
    let expected = [
        (1, Some(86_400_000)),
        (4, Some(5)),
        (2, Some(5)),
        (1, Some(3_600_000)),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_is_wrong_with_an_approval_is_said() {
    check_body(
        r#"
steps:
  - {name: text, approval: {approvers: "role:ops", timeout: 1h}}
  - {name: object, approval: {approvers: {a: $.input.b}, timeout: 1h}}
  - {name: mixed, approval: {approvers: [bob, $.input.x], timeout: 1h}}
  - {name: number, approval: {approvers: [7], timeout: 1h}}
  - {name: person, approval: {approvers: [ada, "user:"], timeout: 1h}}
  - {name: quorum, approval: {approvers: ["user:ada", "user:ada"], quorum: 2, timeout: 1h}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].approval.approvers to be a list of approvers, a path or `cel`, but it is the string "role:ops"
             --> w.yaml:5:40
              |
            5 |   - {name: text, approval: {approvers: "role:ops", timeout: 1h}}
              |                                        ^^^^^^^^^^

            error[E100]: expected steps[1].approval.approvers to be a list of approvers, a path or `cel`, but it is a mapping
             --> w.yaml:6:42
              |
            6 |   - {name: object, approval: {approvers: {a: $.input.b}, timeout: 1h}}
              |                                          ^

            error[E100]: expected an approver to be `user:` or `role:` and a name without control characters, at most 320 bytes together, but it is "bob"
             --> w.yaml:7:42
              |
            7 |   - {name: mixed, approval: {approvers: [bob, $.input.x], timeout: 1h}}
              |                                          ^^^

            error[E100]: expected steps[3].approval.approvers[0] to be a string, but it is the number 7
             --> w.yaml:8:43
              |
            8 |   - {name: number, approval: {approvers: [7], timeout: 1h}}
              |                                           ^
              = hint: quote it: "7"

            error[E100]: expected an approver to be `user:` or `role:` and a name without control characters, at most 320 bytes together, but it is "ada"
             --> w.yaml:9:43
              |
            9 |   - {name: person, approval: {approvers: [ada, "user:"], timeout: 1h}}
              |                                           ^^^

            error[E100]: expected an approver to be `user:` or `role:` and a name without control characters, at most 320 bytes together, but it is "user:"
             --> w.yaml:9:48
              |
            9 |   - {name: person, approval: {approvers: [ada, "user:"], timeout: 1h}}
              |                                                ^^^^^^^

            error[E100]: expected steps[5].approval.quorum to be at most the number of approvers, which is 1
              --> w.yaml:10:76
               |
            10 |   - {name: quorum, approval: {approvers: ["user:ada", "user:ada"], quorum: 2, timeout: 1h}}
               |                                                                            ^
        "#]],
    );
}

#[test]
fn the_bounds_and_keys_of_an_approval_are_checked() {
    check_body(
        r#"
steps:
  - {name: none, approval: {quorum: 0, timeout: 1h}}
  - {name: large, approval: {quorum: 101, timeout: 1h}}
  - {name: both, approval: {timeout: 1h, timeoutMs: 5}}
  - {name: zero, approval: {timeout: PT0S}}
  - {name: extra, approval: {timeout: 1h, onTimeout: flo.Failed}, retry: {}, inputMapping: {}}
  - {name: forever, approval: {}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].approval.quorum to be from 1 to 100, but it is the number 0
             --> w.yaml:5:37
              |
            5 |   - {name: none, approval: {quorum: 0, timeout: 1h}}
              |                                     ^

            error[E100]: expected steps[1].approval.quorum to be from 1 to 100, but it is the number 101
             --> w.yaml:6:38
              |
            6 |   - {name: large, approval: {quorum: 101, timeout: 1h}}
              |                                      ^^^

            error[E100]: expected `timeout` or `timeoutMs`, but both are given
             --> w.yaml:7:42
              |
            7 |   - {name: both, approval: {timeout: 1h, timeoutMs: 5}}
              |                                          ^^^^^^^^^

            error[E514]: expected steps[3].approval.timeout to be at least 1 ms
             --> w.yaml:8:38
              |
            8 |   - {name: zero, approval: {timeout: PT0S}}
              |                                      ^^^^

            error[E100]: unknown key "onTimeout" at steps[4].approval
             --> w.yaml:9:43
              |
            9 |   - {name: extra, approval: {timeout: 1h, onTimeout: flo.Failed}, retry: {}, inputMapping: {}}
              |                                           ^^^^^^^^^
              = hint: did you mean "timeout"?

            error[E100]: expected steps[4] to have no `retry`, since it waits for a decision
             --> w.yaml:9:67
              |
            9 |   - {name: extra, approval: {timeout: 1h, onTimeout: flo.Failed}, retry: {}, inputMapping: {}}
              |                                                                   ^^^^^

            error[E100]: expected steps[4] to have no `inputMapping`, since it waits for a decision
             --> w.yaml:9:78
              |
            9 |   - {name: extra, approval: {timeout: 1h, onTimeout: flo.Failed}, retry: {}, inputMapping: {}}
              |                                                                              ^^^^^^^^^^^^

            warning[E503]: step "forever" waits without a timeout, possibly forever
              --> w.yaml:10:21
               |
            10 |   - {name: forever, approval: {}}
               |                     ^^^^^^^^
               = hint: add `timeout`
        "#]],
    );
}

#[test]
fn outcomes_of_an_approval_without_a_transition_are_named() {
    check_body(
        r#"
start: {approval: {timeout: 1h}, transitions: {success: second}}
steps:
  skipped: {approval: {timeout: 1h}, skipIf: input.skip, transitions: {approved: second, rejected: second}}
  second: {approval: {timeout: 1h}, transitions: {approved: third, failure: flo.Failed}}
  third: {approval: {timeout: 1h}}
"#,
        expect![[r#"
            warning[E502]: outcome `rejected` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start: {approval: {timeout: 1h}, transitions: {success: second}}
              | ^^^^^
              = hint: add a transition for `rejected`

            warning[E301]: step "skipped" cannot be reached from the start
             --> w.yaml:6:3
              |
            6 |   skipped: {approval: {timeout: 1h}, skipIf: input.skip, transitions: {approved: second, rejected: second}}
              |   ^^^^^^^

            warning[E303]: no path leads from step "third" to a terminal
             --> w.yaml:8:3
              |
            8 |   third: {approval: {timeout: 1h}}
              |   ^^^^^

            warning[E502]: step "third" has no transitions: the run fails when the step ends
             --> w.yaml:8:3
              |
            8 |   third: {approval: {timeout: 1h}}
              |   ^^^^^
        "#]],
    );
}

#[test]
fn only_a_server_warns_that_approvers_are_not_enforced() {
    let text = r#"
kind: Workflow
name: w
version: "1"
steps:
  - {name: anyone, approval: {approvers: [], timeout: 1h}}
  - {name: some, approval: {approvers: ["role:ops"], timeout: 1h}}
"#;
    let parsed = parse(text);
    assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    let [reference] = &parsed.references[..] else {
        panic!("expected one reference, but found {:?}", parsed.references);
    };
    assert_eq!(reference.target, ReferenceTarget::Approvers);
    assert_eq!(unregistered(reference).code.as_str(), "E512");
}
