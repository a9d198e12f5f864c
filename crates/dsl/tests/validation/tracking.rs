//! The `tracking` of run steps (W75).

use crate::check_body;
use crate::policies::{check_step, run_step};
use expect_test::expect;
use flotilla_engine::definition::Tracking;

#[test]
fn an_action_can_be_tracked() {
    let tracking = |text: &str| run_step(&format!("  tracking: {text}\n")).tracking;
    let timeout_ms = Some(86_400_000);
    assert_eq!(
        tracking("{mode: async, timeout: P1D}"),
        Tracking::Async { timeout_ms }
    );
    let for_ever = Tracking::Async { timeout_ms: None };
    assert_eq!(tracking("{mode: async}"), for_ever);
    assert_eq!(tracking("{mode: sync}"), Tracking::Sync);
    assert_eq!(tracking("{}"), Tracking::Sync);
}

#[test]
fn only_an_action_can_be_tracked() {
    check_step(
        "  tracking: {mode: async, timeout: 0}\n",
        expect![[r#"
            error[E514]: expected start.tracking.timeout to be at least 1 ms
             --> w.yaml:7:36
              |
            7 |   tracking: {mode: async, timeout: 0}
              |                                    ^
        "#]],
    );
    check_step(
        "  tracking: {timeout: 1s}\n",
        expect![[r#"
        warning[E524]: start.tracking.timeout has no effect with `mode: sync`
         --> w.yaml:7:14
          |
        7 |   tracking: {timeout: 1s}
          |              ^^^^^^^
          = hint: leave it out, or set `mode: async`
    "#]],
    );
    check_body(
        "start:\n  run: \"@workflow/w\"\n  tracking: {mode: async}\n  transitions: {success: flo.Completed, failure: flo.Failed}\n",
        expect![[r#"
            error[E100]: expected start to have no `tracking`, since its target is not an action
             --> w.yaml:6:3
              |
            6 |   tracking: {mode: async}
              |   ^^^^^^^^
              = hint: a child workflow reports its own end
        "#]],
    );
    check_body(
        "plans:\n  p:\n    executors: [{name: e, action: \"@actions/a\"}]\nstart:\n  run: \"@plan/p\"\n  tracking: {mode: async}\n  transitions: {success: flo.Completed, failure: flo.Failed}\n",
        expect![[r#"
            error[E100]: expected start to have no `tracking`, since its target is not an action
             --> w.yaml:9:3
              |
            9 |   tracking: {mode: async}
              |   ^^^^^^^^
              = hint: give it to the executors of the plan
        "#]],
    );
    check_body(
        "start:\n  waitForSignal: {type: go, timeoutMs: 5}\n  tracking: {mode: async}\n  transitions: {success: flo.Completed}\n",
        expect![[r#"
            error[E100]: expected start to have no `tracking`, since it waits for a signal
             --> w.yaml:6:3
              |
            6 |   tracking: {mode: async}
              |   ^^^^^^^^
        "#]],
    );
}
