//! W59, W79: steps that wait for a time.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{SignalTypeValue, Step, StepKind, TimerStep};

#[test]
fn a_step_waits_for_a_time() {
    let definition = accept_body(
        r#"
steps:
  - {name: iso, wait: {duration: P1DT2H}}
  - {name: short, wait: {duration: 1h30m}}
  - {name: ms, wait: {duration_ms: 1500}}
  - {name: camel, wait: {durationMs: 1500}}
  - {name: path, wait: {until: $.input.at}, skipIf: "input.now"}
  - {name: cel, wait: {until: {cel: "flo.now + duration('24h')"}}}
  - {name: text, wait: {until: "2030-01-01T00:00:00Z"}}
"#,
    );
    let lengths: Vec<Option<u64>> = definition
        .steps
        .iter()
        .map(|step| match &step.kind {
            StepKind::Timer(TimerStep::Duration { ms }) => Some(*ms),
            StepKind::Timer(TimerStep::Until(_)) => None,
            other => panic!("expected a wait, but found {other:?}"),
        })
        .collect();
    let expected = [
        Some(93_600_000),
        Some(5_400_000),
        Some(1_500),
        Some(1_500),
        None,
        None,
        None,
    ];
    assert_eq!(lengths, expected);
}

#[test]
fn a_wait_has_one_time_that_is_well_formed_and_not_too_long() {
    check_body(
        r#"
steps:
  - {name: none, wait: {}}
  - {name: both, wait: {duration: 1h, until: 0}}
  - {name: month, wait: {duration: P1M}}
  - {name: number, wait: {duration: 15}}
  - {name: long, wait: {duration: P3661D}}
  - {name: late, wait: {duration_ms: 316224000001}}
  - {name: extra, wait: {duration: 1h, timeout: 1}, retry: {}, set: {a: 1}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].wait to have one of `duration`, `duration_ms` and `until`, but it has no such key
             --> w.yaml:5:24
              |
            5 |   - {name: none, wait: {}}
              |                        ^

            error[E100]: expected steps[1].wait to have one of `duration`, `duration_ms` and `until`, but it has several
             --> w.yaml:6:24
              |
            6 |   - {name: both, wait: {duration: 1h, until: 0}}
              |                        ^

            error[E514]: expected steps[2].wait.duration to be a duration, but it is the string "P1M"
             --> w.yaml:7:36
              |
            7 |   - {name: month, wait: {duration: P1M}}
              |                                    ^^^
              = hint: use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)

            error[E514]: expected steps[3].wait.duration to be a duration, but it is the number 15
             --> w.yaml:8:37
              |
            8 |   - {name: number, wait: {duration: 15}}
              |                                     ^^
              = hint: use ISO 8601 without months and years (PT15M, P1DT12H), or a short form (15m, 1h30m, 200ms)

            error[E514]: expected steps[4].wait.duration to be at most 3660 days
             --> w.yaml:9:35
              |
            9 |   - {name: long, wait: {duration: P3661D}}
              |                                   ^^^^^^

            error[E514]: expected steps[5].wait.duration_ms to be from 0 to 316224000000, but it is the number 316224000001
              --> w.yaml:10:38
               |
            10 |   - {name: late, wait: {duration_ms: 316224000001}}
               |                                      ^^^^^^^^^^^^

            error[E100]: unknown key "timeout" at steps[6].wait
              --> w.yaml:11:40
               |
            11 |   - {name: extra, wait: {duration: 1h, timeout: 1}, retry: {}, set: {a: 1}}
               |                                        ^^^^^^^
               = hint: the known keys here are duration, duration_ms, durationMs, until

            error[E100]: expected steps[6] to have no `retry`, since it waits for a time
              --> w.yaml:11:53
               |
            11 |   - {name: extra, wait: {duration: 1h, timeout: 1}, retry: {}, set: {a: 1}}
               |                                                     ^^^^^

            error[E100]: expected steps[6] to have no `set`, since it waits for a time
              --> w.yaml:11:64
               |
            11 |   - {name: extra, wait: {duration: 1h, timeout: 1}, retry: {}, set: {a: 1}}
               |                                                                ^^^
        "#]],
    );
}

#[test]
fn the_type_of_a_signal_is_a_name_or_a_value() {
    let definition = accept_body(
        r#"
steps:
  - {name: name, waitForSignal: {type: paid, timeoutMs: 1}}
  - {name: path, waitForSignal: {type: $.input.type, timeoutMs: 1}}
  - {name: cel, waitForSignal: {type: {cel: "'paid-' + input.id"}, timeoutMs: 1}}
"#,
    );
    let is_computed = |step: &Step| match &step.kind {
        StepKind::Wait(wait) => matches!(wait.signal_type, SignalTypeValue::Computed(_)),
        other => panic!("expected a wait, but found {other:?}"),
    };
    let are_computed: Vec<bool> = definition.steps.iter().map(is_computed).collect();
    assert_eq!(are_computed, [false, true, true]);
    check_body(
        r#"
steps:
  - {name: reserved, waitForSignal: {type: approval.x, timeoutMs: 1}}
  - {name: number, waitForSignal: {type: 7, timeoutMs: 1}}
  - {name: object, waitForSignal: {type: {name: go}, timeoutMs: 1}}
  - {name: nowhere, waitForSignal: {type: $.steps.nothing.output, timeoutMs: 1}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].waitForSignal.type to be a type that does not begin with `approval.`, which is reserved
             --> w.yaml:5:44
              |
            5 |   - {name: reserved, waitForSignal: {type: approval.x, timeoutMs: 1}}
              |                                            ^^^^^^^^^^
              = hint: use an `approval` step, or another type

            error[E100]: expected steps[1].waitForSignal.type to be a string, but it is the number 7
             --> w.yaml:6:42
              |
            6 |   - {name: number, waitForSignal: {type: 7, timeoutMs: 1}}
              |                                          ^
              = hint: quote it: "7"

            error[E100]: expected steps[2].waitForSignal.type to be a string, but it is a mapping
             --> w.yaml:7:42
              |
            7 |   - {name: object, waitForSignal: {type: {name: go}, timeoutMs: 1}}
              |                                          ^

            error[E508]: invalid path "$.steps.nothing.output": there is no step "nothing"
             --> w.yaml:8:43
              |
            8 |   - {name: nowhere, waitForSignal: {type: $.steps.nothing.output, timeoutMs: 1}}
              |                                           ^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_workflow_has_a_timeout_that_no_wait_should_exceed() {
    let definition = accept_body("timeout: P1D\nsteps:\n  - {name: rest, wait: {duration: P1D}}\n");
    assert_eq!(definition.timeout_ms, Some(86_400_000));
    let in_ms = accept_body("timeoutMs: 5\nsteps:\n  - {name: note, set: {a: 1}}\n");
    assert_eq!(in_ms.timeout_ms, Some(5));
    check_body(
        r#"
timeout: 1h
steps:
  - {name: rest, wait: {duration: 61m}}
  - {name: ms, wait: {duration_ms: 3600001}}
  - {name: signal, waitForSignal: {type: go, timeoutMs: 3600001}}
  - {name: gate, approval: {timeout: P1D}}
  - {name: short, approval: {timeoutMs: 3600000}}
"#,
        expect![[r#"
            warning[E521]: expected at most the 3600000 ms of the workflow timeout, but this can take 3660000 ms
             --> w.yaml:6:35
              |
            6 |   - {name: rest, wait: {duration: 61m}}
              |                                   ^^^
              = hint: shorten it, or raise the workflow timeout

            warning[E521]: expected at most the 3600000 ms of the workflow timeout, but this can take 3600001 ms
             --> w.yaml:7:36
              |
            7 |   - {name: ms, wait: {duration_ms: 3600001}}
              |                                    ^^^^^^^
              = hint: shorten it, or raise the workflow timeout

            warning[E521]: expected at most the 3600000 ms of the workflow timeout, but this can take 3600001 ms
             --> w.yaml:8:57
              |
            8 |   - {name: signal, waitForSignal: {type: go, timeoutMs: 3600001}}
              |                                                         ^^^^^^^
              = hint: shorten it, or raise the workflow timeout

            warning[E521]: expected at most the 3600000 ms of the workflow timeout, but this can take 86400000 ms
             --> w.yaml:9:38
              |
            9 |   - {name: gate, approval: {timeout: P1D}}
              |                                      ^^^
              = hint: shorten it, or raise the workflow timeout
        "#]],
    );
    check_body(
        r#"
timeout: 0s
timeoutMs: 0
steps:
  - {name: note, set: {a: 1}}
"#,
        expect![[r#"
            error[E100]: expected `timeout` or `timeoutMs`, but both are given
             --> w.yaml:5:1
              |
            5 | timeoutMs: 0
              | ^^^^^^^^^
        "#]],
    );
}
