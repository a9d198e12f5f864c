//! What becomes of a step that is cancelled (W54, W81).

use crate::policies::run_step;
use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{CallRole, Setting, StepIndex};

#[test]
fn a_run_step_can_be_abandoned() {
    assert!(run_step("  cancellation: abandon\n").is_abandoned);
    assert!(!run_step("  cancellation: wait\n").is_abandoned);
    assert!(!run_step("").is_abandoned);
}

#[test]
fn a_step_names_what_is_called_when_it_was_cancelled() {
    let body = "start:\n  waitForSignal: {type: go, timeoutMs: 5}\n  onCancel: {run: \"@actions/tidy\", inputMapping: {n: $.input.n}, timeouts: {total: PT1M}}\n  transitions: {success: flo.Completed}\n";
    let definition = accept_body(body);
    let call = definition.step(StepIndex::START).call(CallRole::OnCancel);
    let call = call.expect("a call");
    assert!(call.input.is_some());
    assert_eq!(call.retry, Setting::Disabled);
    let timeouts = definition.timeouts(StepIndex::START, CallRole::OnCancel);
    assert_eq!(timeouts.total_ms, Some(60_000));
}

#[test]
fn what_is_called_is_checked() {
    check_body(
        "start:\n  run: \"@actions/a\"\n  cancellation: later\n  onCancel: {run: \"@actions/b\", fallback: {run: \"@actions/c\"}}\n  transitions: {success: flo.Completed, failure: flo.Failed}\n",
        expect![[r#"
            error[E100]: expected start.cancellation to be one of `wait`, `abandon`, but it is the string "later"
             --> w.yaml:6:17
              |
            6 |   cancellation: later
              |                 ^^^^^

            error[E519]: expected start.onCancel to have no `fallback`
             --> w.yaml:7:3
              |
            7 |   onCancel: {run: "@actions/b", fallback: {run: "@actions/c"}}
              |   ^^^^^^^^
              = hint: a fallback, a compensation or a handler of a step is a single call
        "#]],
    );
    check_body(
        "start:\n  waitForSignal: {type: go, timeoutMs: 5}\n  cancellation: wait\n  transitions: {success: flo.Completed}\n",
        expect![[r#"
            error[E100]: expected start to have no `cancellation`, since it waits for a signal
             --> w.yaml:6:3
              |
            6 |   cancellation: wait
              |   ^^^^^^^^^^^^
        "#]],
    );
    check_body(
        "steps:\n  - name: all\n    block: {run: \"@actions/a\"}\n    onCancel: {run: \"@actions/b\"}\n",
        expect![[r#"
            error[E100]: expected steps[0] to have no `onCancel`, since it has a block
             --> w.yaml:7:5
              |
            7 |     onCancel: {run: "@actions/b"}
              |     ^^^^^^^^
              = hint: give it to a step that executes a target or waits
        "#]],
    );
}
