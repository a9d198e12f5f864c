//! E401 and the defaults of retry and poll (W3).

use crate::{accept_body, check_body};
use expect_test::{Expect, expect};
use flotilla_engine::definition::{
    Backoff, BackoffKind, CallRole, Definition, PollPolicy, RetryDelays, RetryPolicy, Root,
    RunStep, Setting, StepIndex, StepKind, StepRetry,
};

pub(crate) fn check_step(lines: &str, expected: Expect) {
    check_body(&step(lines), expected);
}

fn step(lines: &str) -> String {
    format!(
        "start:\n  run: \"@actions/a\"\n  transitions: {{success: flo.Completed, failure: flo.Failed, timeout: flo.Failed}}\n{lines}"
    )
}

pub(crate) fn run_step(lines: &str) -> RunStep {
    let Definition { steps, .. } = accept_body(&step(lines));
    match steps.into_iter().next().map(|step| step.kind) {
        Some(StepKind::Run(step)) => *step,
        other => panic!("expected a run step, but it is {other:?}"),
    }
}

fn backoff(kind: BackoffKind, initial_delay_ms: u64, max_delay_ms: u64) -> Backoff {
    Backoff {
        kind,
        initial_delay_ms,
        max_delay_ms,
        coefficient_percent: 200,
    }
}

fn policy(max_attempts: u32, backoff: Backoff, within_ms: Option<u64>) -> StepRetry {
    StepRetry {
        policy: RetryPolicy {
            max_attempts,
            delays: RetryDelays::Backoff(backoff),
            within_ms,
        },
        on: None,
        non_retryable_errors: Vec::new(),
        when: None,
        keep_state: false,
    }
}

/// The policy of a step with this `retry`.
fn retry_of(text: &str) -> StepRetry {
    match run_step(&format!("  retry: {text}\n")).call.retry {
        Setting::Own(retry) => retry,
        other => panic!("expected a policy, but it is {other:?}"),
    }
}

fn delays(text: &str) -> RetryDelays {
    retry_of(text).policy.delays
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
            error[E401]: expected start.retry.initial_delay_ms to be from 0 to 316224000000, but it is the number -1
             --> w.yaml:7:29
              |
            7 |   retry: {initial_delay_ms: -1, within_ms: -5}
              |                             ^^

            error[E401]: expected start.retry.within_ms to be from 0 to 316224000000, but it is the number -5
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

            error[E401]: expected start.poll.initialDelayMs to be from 0 to 316224000000, but it is the number -1
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
    assert_eq!(step.call.retry, Setting::Default);
    assert_eq!((step.poll, step.call.input), (None, None));
}

#[test]
fn empty_blocks_have_the_defaults_of_w3() {
    let step = run_step("  retry: {}\n  poll: {}\n");
    let retry = policy(3, backoff(BackoffKind::Exponential, 1_000, 30_000), None);
    let poll = PollPolicy {
        initial_delay_ms: 0,
        max_attempts: 10,
        backoff: backoff(BackoffKind::Exponential, 1_000, 60_000),
    };
    assert_eq!(
        (step.call.retry, step.poll),
        (Setting::Own(retry), Some(poll))
    );
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
    let backoff_of_retry = backoff(BackoffKind::ExponentialJitter, 500, 30_000);
    let retry = policy(5, backoff_of_retry, Some(120_000));
    let poll = PollPolicy {
        initial_delay_ms: 2_000,
        max_attempts: 30,
        backoff: backoff(BackoffKind::Linear, 2_000, 45_000),
    };
    assert_eq!(
        (step.call.retry, step.poll),
        (Setting::Own(retry), Some(poll))
    );
}

#[test]
fn the_default_cap_of_a_retry_rises_to_the_initial_delay() {
    assert_eq!(
        delays("{initialDelayMs: 45000}"),
        RetryDelays::Backoff(backoff(BackoffKind::Exponential, 45_000, 45_000))
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
        let RetryDelays::Backoff(backoff) = delays(&format!("{{backoff: {word}}}")) else {
            panic!("expected computed delays");
        };
        assert_eq!(backoff.kind, kind, "{word}");
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

#[test]
fn a_retry_can_list_its_delays_or_have_none() {
    let retry = retry_of("{delays: [PT1S, 1m, 1500]}");
    assert_eq!(
        retry.policy.delays,
        RetryDelays::Listed(vec![1_000, 60_000, 1_500])
    );
    assert_eq!(retry.policy.max_attempts, 4);
    let none = RetryDelays::Backoff(backoff(BackoffKind::Constant, 0, 0));
    assert_eq!(delays("{backoff: none}"), none);
    let coefficient = |text| match delays(text) {
        RetryDelays::Backoff(backoff) => backoff.coefficient_percent,
        RetryDelays::Listed(_) => panic!("expected computed delays"),
    };
    assert_eq!(coefficient("{backoff_coefficient: 1.5}"), 150);
    assert_eq!(coefficient("{backoffCoefficient: 10}"), 1_000);
}

#[test]
fn e401_delays_that_exclude_each_other() {
    check_step(
        "  retry: {delays: [], max_attempts: 2}\n",
        expect![[r#"
        error[E401]: expected start.retry.delays to have a delay, but it is empty
         --> w.yaml:7:19
          |
        7 |   retry: {delays: [], max_attempts: 2}
          |                   ^
    "#]],
    );
    check_step(
        "  retry: {delays: [1s], max_delay_ms: 5}\n",
        expect![[r#"
            error[E401]: expected no `max_delay_ms`, since `delays` lists the delays
             --> w.yaml:7:25
              |
            7 |   retry: {delays: [1s], max_delay_ms: 5}
              |                         ^^^^^^^^^^^^
        "#]],
    );
    check_step(
        "  retry: {delays: [soon]}\n",
        expect![[r#"
        error[E514]: expected start.retry.delays[0] to be a duration, but it is the string "soon"
         --> w.yaml:7:20
          |
        7 |   retry: {delays: [soon]}
          |                    ^^^^
          = hint: use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)
    "#]],
    );
    check_step(
        "  retry: {backoff: none, initial_delay_ms: 5}\n",
        expect![[r#"
            error[E401]: expected no `initial_delay_ms`, since `backoff: none` has no delays
             --> w.yaml:7:26
              |
            7 |   retry: {backoff: none, initial_delay_ms: 5}
              |                          ^^^^^^^^^^^^^^^^
        "#]],
    );
    check_step(
        "  retry: {backoff_coefficient: 0.5}\n",
        expect![[r#"
        error[E401]: expected start.retry.backoff_coefficient to be from 1 to 10, but it is the number 0.5
         --> w.yaml:7:32
          |
        7 |   retry: {backoff_coefficient: 0.5}
          |                                ^^^
    "#]],
    );
    check_step(
        "  retry: {backoff: linear, backoff_coefficient: 3}\n",
        expect![[r#"
            warning[E524]: start.retry.backoff_coefficient has no effect with this `backoff`
             --> w.yaml:7:28
              |
            7 |   retry: {backoff: linear, backoff_coefficient: 3}
              |                            ^^^^^^^^^^^^^^^^^^^
              = hint: leave it out, or use `backoff: exponential`
        "#]],
    );
}

#[test]
fn a_retry_says_what_it_applies_to() {
    let retry = retry_of(
        "{on: [timeout, busy], non_retryable_errors: [fraud], when: 'attempt < 3 && error.code != \"x\"'}",
    );
    let on: Vec<_> = retry
        .on
        .iter()
        .flatten()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(on, ["timeout", "busy"]);
    assert_eq!(retry.non_retryable_errors, ["fraud"]);
    assert!(retry.when.is_some());
    assert!(!retry.keep_state);
    assert!(retry_of("{keep_state: true}").keep_state);
}

#[test]
fn e100_conditions_of_a_retry_that_mean_nothing() {
    check_step(
        "  retry: {on: []}\n",
        expect![[r#"
        error[E100]: expected start.retry.on to name an outcome, but it is empty
         --> w.yaml:7:15
          |
        7 |   retry: {on: []}
          |               ^
    "#]],
    );
    check_step(
        "  retry: {on: [two words]}\n",
        expect![[r#"
        error[E100]: expected an outcome to be 1 to 64 letters, digits, `_`, `-` or `.`, but it is "two words"
         --> w.yaml:7:16
          |
        7 |   retry: {on: [two words]}
          |                ^^^^^^^^^
    "#]],
    );
    check_step(
        "  retry: {non_retryable_errors: ['']}\n",
        expect![[r#"
        error[E100]: expected start.retry.non_retryable_errors[0] to have 1 to 256 bytes, but it has 0
         --> w.yaml:7:34
          |
        7 |   retry: {non_retryable_errors: ['']}
          |                                  ^^
    "#]],
    );
    check_step(
        "  retry: {when: 'errors.code == 1'}\n",
        expect![[r#"
        error[E513]: invalid expression at column 1 of "errors.code == 1": there is no name "errors"
         --> w.yaml:7:17
          |
        7 |   retry: {when: 'errors.code == 1'}
          |                 ^^^^^^^^^^^^^^^^^^
          = hint: did you mean `error`?
    "#]],
    );
    check_step(
        "  skipIf: 'attempt > 1'\n",
        expect![[r#"
        error[E513]: invalid expression at column 1 of "attempt > 1": there is no name "attempt"
         --> w.yaml:7:11
          |
        7 |   skipIf: 'attempt > 1'
          |           ^^^^^^^^^^^^^
    "#]],
    );
    check_step(
        "  retry: true\n",
        expect![[r#"
        error[E100]: expected start.retry to be a mapping, but it is the boolean true
         --> w.yaml:7:10
          |
        7 |   retry: true
          |          ^^^^
    "#]],
    );
}

#[test]
fn defaults_hold_for_steps_without_a_policy() {
    let definition = accept_body(&format!(
        "defaults: {{retry: {{max_attempts: 7}}}}\n{}",
        step("")
    ));
    let retry = definition.retry(StepIndex::START, CallRole::Target);
    assert_eq!(retry.map(|retry| retry.policy.max_attempts), Some(7));
    let definition = accept_body(&format!(
        "defaults: {{retry: {{max_attempts: 7}}}}\n{}",
        step("  retry: false\n")
    ));
    assert_eq!(definition.retry(StepIndex::START, CallRole::Target), None);
    check_body(
        &format!("defaults: {{retry: false}}\n{}", step("")),
        expect![[r#"
            error[E100]: expected defaults.retry to be a mapping, but it is the boolean false
             --> w.yaml:4:19
              |
            4 | defaults: {retry: false}
              |                   ^^^^^
        "#]],
    );
}

#[test]
fn the_retry_of_an_executor_has_no_conditions() {
    check_body(
        &format!(
            "plans:\n  p:\n    executors:\n      - name: e\n        action: \"@actions/a\"\n        retry: {{when: \"true\"}}\n{}",
            crate::START
        ),
        expect![[r#"
            error[E100]: unknown key "when" at plans.p.executors[0].retry
             --> w.yaml:9:17
              |
            9 |         retry: {when: "true"}
              |                 ^^^^
              = hint: the known keys here are max_attempts, within_ms, backoff, initial_delay_ms, max_delay_ms, backoff_coefficient, delays
        "#]],
    );
}

#[test]
fn a_fallback_is_a_call_that_sees_the_error() {
    let step = run_step("  fallback: {run: \"@actions/b\", inputMapping: {why: $.error.code}}\n");
    let fallback = step.fallback.expect("a fallback");
    let input = fallback.input.expect("a mapping");
    let roots: Vec<Root> = input.paths().map(|path| path.root).collect();
    assert_eq!(roots, [Root::Error]);
    assert_eq!(fallback.retry, Setting::Disabled);
    check_step(
        "  inputMapping: {why: $.error.code}\n",
        expect![[r#"
            error[E508]: invalid path "$.error.code": `$.error` is available only in `onError` and the `inputMapping` of a fallback
             --> w.yaml:7:23
              |
            7 |   inputMapping: {why: $.error.code}
              |                       ^^^^^^^^^^^^
        "#]],
    );
    check_step(
        "  fallback: {retry: {}}\n",
        expect![[r#"
        error[E100]: expected start.fallback to have `run`, but it is missing
         --> w.yaml:7:3
          |
        7 |   fallback: {retry: {}}
          |   ^^^^^^^^
    "#]],
    );
    check_body(
        "start:\n  wait: {duration: 1s}\n  fallback: {run: \"@actions/b\"}\n  transitions: {success: flo.Completed}\n",
        expect![[r#"
            error[E100]: expected start to have no `fallback`, since it waits for a time
             --> w.yaml:6:3
              |
            6 |   fallback: {run: "@actions/b"}
              |   ^^^^^^^^
        "#]],
    );
}

#[test]
fn e519_a_fallback_of_a_fallback() {
    check_step(
        "  fallback: {run: \"@actions/b\", fallback: {run: \"@actions/c\"}}\n",
        expect![[r#"
            error[E519]: expected start.fallback to have no `fallback`
             --> w.yaml:7:3
              |
            7 |   fallback: {run: "@actions/b", fallback: {run: "@actions/c"}}
              |   ^^^^^^^^
              = hint: a fallback, a compensation or a handler of a step is a single call
        "#]],
    );
}
