//! The timeouts of steps (W70), and the bounds of step counts (W78).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{CallRole, StepIndex, Timeouts};

fn step(lines: &str) -> String {
    format!(
        "start:\n  run: \"@actions/a\"\n  transitions: {{success: flo.Completed, failure: flo.Failed, timeout: flo.Failed}}\n{lines}"
    )
}

fn timeouts(text: &str) -> Timeouts {
    accept_body(text).timeouts(StepIndex::START, CallRole::Target)
}

#[test]
fn a_run_step_has_four_timeouts() {
    let all = "  timeouts: {attempt: PT1M, totalMs: 600000, queue: 2m, heartbeat: 15s}\n";
    let expected = Timeouts {
        attempt_ms: Some(60_000),
        total_ms: Some(600_000),
        queue_ms: Some(120_000),
        heartbeat_ms: Some(15_000),
    };
    assert_eq!(timeouts(&step(all)), expected);
    let short = "  timeout: 1s\n  timeouts: {total: 5s}\n";
    let expected = Timeouts {
        attempt_ms: Some(1_000),
        total_ms: Some(5_000),
        ..Timeouts::default()
    };
    assert_eq!(timeouts(&step(short)), expected);
}

#[test]
fn defaults_hold_for_run_steps_without_timeouts() {
    let defaults = "defaults: {timeouts: {attempt: 1s, queue: 2s}}\n";
    let attempt = |lines: &str| timeouts(&format!("{defaults}{}", step(lines)));
    assert_eq!(attempt("").queue_ms, Some(2_000));
    assert_eq!(attempt("  timeout: 3s\n").attempt_ms, Some(3_000));
    assert_eq!(attempt("  timeout: 3s\n").queue_ms, None);
    let fallback = "  fallback: {run: \"@actions/b\", timeouts: {total: 9s}}\n";
    let definition = accept_body(&format!("{defaults}{}", step(fallback)));
    let fallback = definition.timeouts(StepIndex::START, CallRole::Fallback);
    assert_eq!(
        (fallback.total_ms, fallback.attempt_ms),
        (Some(9_000), None)
    );
}

#[test]
fn steps_that_open_blocks_have_one_timeout() {
    let body =
        |lines: &str| format!("steps:\n  - name: all\n    block: {{run: \"@actions/a\"}}\n{lines}");
    let definition = accept_body(&body("    timeout: P1D\n"));
    let total_ms = definition.total_ms(StepIndex::START, CallRole::Target);
    assert_eq!(total_ms, Some(86_400_000));
    check_body(
        &body("    timeouts: {total: 1s}\n"),
        expect![[r#"
        error[E100]: expected steps[0] to have no `timeouts`, since it has a block
         --> w.yaml:7:5
          |
        7 |     timeouts: {total: 1s}
          |     ^^^^^^^^
    "#]],
    );
    check_body(
        "steps:\n  - {name: rest, wait: {duration: 1s}, timeout: 5s}\n",
        expect![[r#"
            error[E100]: expected steps[0] to have no `timeout`, since it waits for a time
             --> w.yaml:5:40
              |
            5 |   - {name: rest, wait: {duration: 1s}, timeout: 5s}
              |                                        ^^^^^^^
        "#]],
    );
}

#[test]
fn e514_timeouts_out_of_range() {
    check_body(
        &step("  timeout: 0ms\n"),
        expect![[r#"
        error[E514]: expected start.timeout to be at least 1 ms
         --> w.yaml:7:12
          |
        7 |   timeout: 0ms
          |            ^^^
    "#]],
    );
    check_body(
        &step("  timeouts: {heartbeat: P2D, total: soon}\n"),
        expect![[r#"
        error[E514]: expected start.timeouts.heartbeat to be at most 24 h
         --> w.yaml:7:25
          |
        7 |   timeouts: {heartbeat: P2D, total: soon}
          |                         ^^^

        error[E514]: expected start.timeouts.total to be a duration, but it is the string "soon"
         --> w.yaml:7:37
          |
        7 |   timeouts: {heartbeat: P2D, total: soon}
          |                                     ^^^^
          = hint: use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)
    "#]],
    );
}

#[test]
fn e100_a_timeout_given_twice() {
    check_body(
        &step("  timeout: 1s\n  timeouts: {attempt: 2s}\n"),
        expect![[r#"
        error[E100]: expected `timeout` or `timeouts.attempt`, but both are given
         --> w.yaml:8:3
          |
        8 |   timeouts: {attempt: 2s}
          |   ^^^^^^^^
    "#]],
    );
    check_body(
        &step("  timeouts: {queue: 1s, queueMs: 2}\n"),
        expect![[r#"
        error[E100]: expected `queue` or `queueMs`, but both are given
         --> w.yaml:7:25
          |
        7 |   timeouts: {queue: 1s, queueMs: 2}
          |                         ^^^^^^^
    "#]],
    );
}

#[test]
fn step_counts_have_bounds() {
    let definition = accept_body(&format!("maxSteps: 5\nloopWarnAfter: 7\n{}", step("")));
    assert_eq!(
        (definition.max_steps, definition.loop_warn_after),
        (Some(5), 7)
    );
    let definition = accept_body(&step(""));
    assert_eq!(
        (definition.max_steps, definition.loop_warn_after),
        (None, 100)
    );
    check_body(
        &format!("maxSteps: 0\nloopWarnAfter: 1000001\n{}", step("")),
        expect![[r#"
            error[E100]: expected maxSteps to be from 1 to 1000000, but it is the number 0
             --> w.yaml:4:11
              |
            4 | maxSteps: 0
              |           ^

            error[E100]: expected loopWarnAfter to be from 1 to 1000000, but it is the number 1000001
             --> w.yaml:5:16
              |
            5 | loopWarnAfter: 1000001
              |                ^^^^^^^
        "#]],
    );
}

#[test]
fn timeouts_without_effect_are_warned_of() {
    check_body(
        "start: {run: \"@workflow/w\", timeouts: {queue: 1s, heartbeat: 1s}, transitions: {success: flo.Completed, failure: flo.Failed}}\n",
        expect![[r#"
            warning[E502]: outcome `timeout` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start: {run: "@workflow/w", timeouts: {queue: 1s, heartbeat: 1s}, transitions: {success: flo.Completed, failure: flo.Fai…
              | ^^^^^
              = hint: add a transition for `timeout`

            warning[E524]: start.timeouts.heartbeat has no effect for a child workflow
             --> w.yaml:4:51
              |
            4 | start: {run: "@workflow/w", timeouts: {queue: 1s, heartbeat: 1s}, transitions: {success: flo.Completed, failure: flo.Fai…
              |                                                   ^^^^^^^^^
              = hint: leave it out: no worker takes a child workflow
        "#]],
    );
    check_body(
        &format!("timeout: 1m\n{}", step("  timeouts: {total: 2m}\n")),
        expect![[r#"
            warning[E521]: expected at most the 60000 ms of the workflow timeout, but this can take 120000 ms
             --> w.yaml:8:21
              |
            8 |   timeouts: {total: 2m}
              |                     ^^
              = hint: shorten it, or raise the workflow timeout
        "#]],
    );
}
