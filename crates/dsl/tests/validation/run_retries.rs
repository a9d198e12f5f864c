//! Runs that are retried as a whole (W77).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::RunRetry;

const STEPS: &str = "steps:\n  - {name: a, run: \"@actions/a\"}\n";

#[test]
fn a_workflow_says_how_its_runs_are_retried() {
    let retry = |text: &str| accept_body(&format!("{text}{STEPS}")).retry_run;
    assert_eq!(retry(""), None);
    let expected = RunRetry {
        max_attempts: 10,
        initial_delay_ms: 0,
        max_delay_ms: None,
        on_failure: false,
    };
    assert_eq!(retry("retryRun: {}\n"), Some(expected));
    assert_eq!(retry("retryRun: {initial_delay: 0}\n"), Some(expected));
    let expected = RunRetry {
        max_attempts: 3,
        initial_delay_ms: 2_000,
        max_delay_ms: Some(60_000),
        on_failure: true,
    };
    let text =
        "retryRun: {max_attempts: 3, initial_delay: PT2S, max_delay_ms: 60000, on_failure: true}\n";
    assert_eq!(retry(text), Some(expected));
}

#[test]
fn retries_of_runs_are_checked() {
    check_body(
        &format!("retryRun: {{max_attempts: 101, initial_delay: soon, backoff: none}}\n{STEPS}"),
        expect![[r#"
            error[E401]: expected retryRun.max_attempts to be from 1 to 100, but it is the number 101
             --> w.yaml:4:26
              |
            4 | retryRun: {max_attempts: 101, initial_delay: soon, backoff: none}
              |                          ^^^

            error[E514]: expected retryRun.initial_delay to be a duration, but it is the string "soon"
             --> w.yaml:4:46
              |
            4 | retryRun: {max_attempts: 101, initial_delay: soon, backoff: none}
              |                                              ^^^^
              = hint: use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)

            error[E100]: unknown key "backoff" at retryRun
             --> w.yaml:4:52
              |
            4 | retryRun: {max_attempts: 101, initial_delay: soon, backoff: none}
              |                                                    ^^^^^^^
              = hint: the known keys here are max_attempts, initial_delay, initial_delay_ms, max_delay, max_delay_ms, on_failure
        "#]],
    );
}
