//! E401 and the defaults of retry and poll (W3).

use crate::{accept_body, check_body};
use expect_test::{Expect, expect};
use flotilla_engine::definition::{
    Backoff, BackoffKind, Definition, PollPolicy, RetryPolicy, RunStep, StepKind,
};

fn check_step(lines: &str, expected: Expect) {
    check_body(&step(lines), expected);
}

fn step(lines: &str) -> String {
    format!(
        "start:\n  run: \"@actions/a\"\n  transitions: {{success: flo.Completed, failure: flo.Failed, timeout: flo.Failed}}\n{lines}"
    )
}

fn run_step(lines: &str) -> RunStep {
    let Definition { steps, .. } = accept_body(&step(lines));
    match steps.into_iter().next().map(|step| step.kind) {
        Some(StepKind::Run(step)) => step,
        other => panic!("expected a run step, but it is {other:?}"),
    }
}

fn backoff(kind: BackoffKind, initial_delay_ms: u64, max_delay_ms: u64) -> Backoff {
    Backoff {
        kind,
        initial_delay_ms,
        max_delay_ms,
    }
}

#[test]
fn e401_retries_out_of_bounds() {
    check_step(
        "  retry: {max_attempts: 0}\n",
        expect![[r#"
        error[E401]: expected start.retry.max_attempts to be from 1 to 1000, but it is the number 0
         --> w.yaml:7:25
          |
        7 |   retry: {max_attempts: 0}
          |                         ^
    "#]],
    );
    check_step(
        "  retry: {max_attempts: 1001}\n",
        expect![[r#"
        error[E401]: expected start.retry.max_attempts to be from 1 to 1000, but it is the number 1001
         --> w.yaml:7:25
          |
        7 |   retry: {max_attempts: 1001}
          |                         ^^^^
    "#]],
    );
    check_step(
        "  retry: {initial_delay_ms: -1, within_ms: -5}\n",
        expect![[r#"
            error[E401]: expected start.retry.initial_delay_ms to be from 0 to 3162240000000, but it is the number -1
             --> w.yaml:7:29
              |
            7 |   retry: {initial_delay_ms: -1, within_ms: -5}
              |                             ^^

            error[E401]: expected start.retry.within_ms to be from 0 to 3162240000000, but it is the number -5
             --> w.yaml:7:44
              |
            7 |   retry: {initial_delay_ms: -1, within_ms: -5}
              |                                            ^^
        "#]],
    );
    check_step(
        "  retry: {initial_delay_ms: 5000, max_delay_ms: 4999}\n",
        expect![[r#"
            error[E401]: expected the initial delay to be at most the cap of 4999 ms, but it is 5000 ms
             --> w.yaml:7:29
              |
            7 |   retry: {initial_delay_ms: 5000, max_delay_ms: 4999}
              |                             ^^^^
              = hint: raise the cap or lower the delay; a value that is not given has its default
        "#]],
    );
    check_step(
        "  retry: {max_delay_ms: 500}\n",
        expect![[r#"
        error[E401]: expected the initial delay to be at most the cap of 500 ms, but it is 1000 ms
         --> w.yaml:7:25
          |
        7 |   retry: {max_delay_ms: 500}
          |                         ^^^
          = hint: raise the cap or lower the delay; a value that is not given has its default
    "#]],
    );
}

#[test]
fn e401_polls_out_of_bounds() {
    check_step(
        "  poll: {maxAttempts: 0}\n",
        expect![[r#"
        error[E401]: expected start.poll.maxAttempts to be from 1 to 1000, but it is the number 0
         --> w.yaml:7:23
          |
        7 |   poll: {maxAttempts: 0}
          |                       ^
    "#]],
    );
    check_step(
        "  poll: {maxAttempts: 1001, initialDelayMs: -1}\n",
        expect![[r#"
            error[E401]: expected start.poll.maxAttempts to be from 1 to 1000, but it is the number 1001
             --> w.yaml:7:23
              |
            7 |   poll: {maxAttempts: 1001, initialDelayMs: -1}
              |                       ^^^^

            error[E401]: expected start.poll.initialDelayMs to be from 0 to 3162240000000, but it is the number -1
             --> w.yaml:7:45
              |
            7 |   poll: {maxAttempts: 1001, initialDelayMs: -1}
              |                                             ^^
        "#]],
    );
    check_step(
        "  poll: {baseDelayMs: 60001}\n",
        expect![[r#"
        error[E401]: expected the initial delay to be at most the cap of 60000 ms, but it is 60001 ms
         --> w.yaml:7:23
          |
        7 |   poll: {baseDelayMs: 60001}
          |                       ^^^^^
          = hint: raise the cap or lower the delay; a value that is not given has its default
    "#]],
    );
    check_step(
        "  poll: {initialDelayMs: 60001}\n",
        expect![[r#"
        error[E401]: expected the initial delay to be at most the cap of 60000 ms, but it is 60001 ms
         --> w.yaml:7:26
          |
        7 |   poll: {initialDelayMs: 60001}
          |                          ^^^^^
          = hint: raise the cap or lower the delay; a value that is not given has its default
    "#]],
    );
}

#[test]
fn e401_is_found_in_executors_too() {
    check_body(
        &format!(
            "plans:\n  p:\n    executors:\n      - name: e\n        action: \"@actions/a\"\n        retry: {{max_attempts: 0}}\n{}",
            crate::START
        ),
        expect![[r#"
            error[E401]: expected plans.p.executors[0].retry.max_attempts to be from 1 to 1000, but it is the number 0
             --> w.yaml:9:31
              |
            9 |         retry: {max_attempts: 0}
              |                               ^
        "#]],
    );
}

#[test]
fn a_step_without_the_blocks_has_no_policy() {
    let step = run_step("");
    assert_eq!((step.retry, step.poll, step.input), (None, None, None));
}

#[test]
fn empty_blocks_have_the_defaults_of_w3() {
    let step = run_step("  retry: {}\n  poll: {}\n");
    let retry = RetryPolicy {
        max_attempts: 3,
        backoff: backoff(BackoffKind::Exponential, 1_000, 30_000),
        within_ms: None,
    };
    let poll = PollPolicy {
        initial_delay_ms: 0,
        max_attempts: 10,
        backoff: backoff(BackoffKind::Exponential, 1_000, 60_000),
    };
    assert_eq!((step.retry, step.poll), (Some(retry), Some(poll)));
}

#[test]
fn the_manuals_blocks_reach_the_definition() {
    let step = run_step(
        r#"
  retry:
    max_attempts: 5
    backoff: exponential_jitter
    initial_delay_ms: 500
    max_delay_ms: 30000
    within_ms: 120000
  poll:
    initialDelayMs: 2000
    maxAttempts: 30
    backoff: linear
    baseDelayMs: 2000
    maxDelayMs: 45000
"#,
    );
    let retry = RetryPolicy {
        max_attempts: 5,
        backoff: backoff(BackoffKind::ExponentialJitter, 500, 30_000),
        within_ms: Some(120_000),
    };
    let poll = PollPolicy {
        initial_delay_ms: 2_000,
        max_attempts: 30,
        backoff: backoff(BackoffKind::Linear, 2_000, 45_000),
    };
    assert_eq!((step.retry, step.poll), (Some(retry), Some(poll)));
}

#[test]
fn the_default_cap_of_a_retry_rises_to_the_initial_delay() {
    let retry = run_step("  retry: {initialDelayMs: 45000}\n").retry;
    assert_eq!(
        retry.map(|retry| retry.backoff),
        Some(backoff(BackoffKind::Exponential, 45_000, 45_000))
    );
}

#[test]
fn backoff_words_have_either_dash() {
    for (word, kind) in [
        ("constant", BackoffKind::Constant),
        ("linear", BackoffKind::Linear),
        ("exponential_jitter", BackoffKind::ExponentialJitter),
        ("exponential-jitter", BackoffKind::ExponentialJitter),
        ("exp-jitter", BackoffKind::ExponentialJitter),
    ] {
        let retry = run_step(&format!("  retry: {{backoff: {word}}}\n")).retry;
        assert_eq!(retry.map(|retry| retry.backoff.kind), Some(kind), "{word}");
    }
    check_step(
        "  retry: {backoff: exponental}\n",
        expect![[r#"
        error[E100]: expected start.retry.backoff to be one of `constant`, `linear`, `exponential`, `exponential_jitter`, `exp_jitter`, but it is the string "exponental"
         --> w.yaml:7:20
          |
        7 |   retry: {backoff: exponental}
          |                    ^^^^^^^^^^
          = hint: did you mean "exponential"?
    "#]],
    );
}
