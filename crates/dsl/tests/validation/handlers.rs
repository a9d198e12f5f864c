//! The handlers of a workflow (W80, W81, W83).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Definition, StepIndex, StepKind};

const START: &str = "start:\n  run: \"@actions/a\"\n  transitions: {success: flo.Completed, failure: flo.Failed, odd: Odd}\nterminals: {Odd: {status: failed}}\n";

fn definition(lines: &str) -> Definition {
    accept_body(&format!("{START}{lines}"))
}

fn timeout_ms(definition: &Definition, handler: Option<StepIndex>) -> Option<u64> {
    let handler = definition.step(handler.expect("a handler"));
    match &handler.kind {
        StepKind::Block(block) => block.timeout_ms,
        other => panic!("expected a block, but it is {other:?}"),
    }
}

#[test]
fn handlers_are_blocks_with_a_timeout() {
    let plain =
        definition("onError: {run: \"@actions/page\", inputMapping: {why: $.error.code}}\n");
    assert_eq!(timeout_ms(&plain, plain.on_error), Some(3_600_000));
    assert_eq!(plain.on_cancel, None);
    let lists = "onError: [{name: page, run: \"@actions/page\"}]\nonCancel:\n  - {name: tidy, run: \"@actions/tidy\", skipIf: \"cancel.reason == null\"}\n  - {name: more, set: {why: {cel: \"cancel.reason\"}}}\nhandlerTimeout: PT5M\n";
    let both = definition(lists);
    assert_eq!(timeout_ms(&both, both.on_error), Some(300_000));
    assert_eq!(timeout_ms(&both, both.on_cancel), Some(300_000));
    let graph = "onError:\n  start: {run: \"@actions/page\", transitions: {success: wait, failure: flo.Failed}}\n  steps:\n    wait: {wait: {duration: PT1M}, transitions: {success: flo.Completed}}\n";
    assert!(definition(graph).on_error.is_some());
}

#[test]
fn a_terminal_can_do_without_the_handler() {
    let text = "start:\n  run: \"@actions/a\"\n  transitions: {success: flo.Completed, failure: Odd}\nterminals: {Odd: {status: failed, onError: false}}\nonError: {run: \"@actions/page\"}\n";
    let definition = accept_body(text);
    assert!(!definition.terminals[0].runs_handler);
}

#[test]
fn nothing_leads_into_or_out_of_a_handler() {
    check_body(
        "start:\n  run: \"@actions/a\"\n  transitions: {success: onError, failure: flo.Failed}\nonError: {run: \"@actions/page\"}\n",
        expect![[r#"
            error[E201]: expected start.transitions.success to lead to a step or terminal, but there is no "onError"
             --> w.yaml:6:26
              |
            6 |   transitions: {success: onError, failure: flo.Failed}
              |                          ^^^^^^^
              = hint: `onError` is executed before a run ends failed: use `flo.Failed`
        "#]],
    );
    check_body(
        &format!(
            "{START}onError:\n  start: {{run: \"@actions/b\", transitions: {{success: Odd, failure: start}}}}\n"
        ),
        expect![[r#"
            error[E515]: expected onError.start.transitions.success to stay in its handler, but it leads to a custom terminal, which ends the run
             --> w.yaml:9:53
              |
            9 |   start: {run: "@actions/b", transitions: {success: Odd, failure: start}}
              |                                                     ^^^
              = hint: the end of the run is decided already: use `flo.Completed` or `flo.Failed`

            error[E515]: expected onError.start.transitions.failure to lead to a step of the same block, but it leads out of it
             --> w.yaml:9:67
              |
            9 |   start: {run: "@actions/b", transitions: {success: Odd, failure: start}}
              |                                                                   ^^^^^
              = hint: a block ends at `flo.Completed`, `flo.Failed` or `flo.End.NAME`
        "#]],
    );
    check_body(
        &format!("{START}onCancel: 5\nhandlerTimeout: 0s\n"),
        expect![[r#"
            error[E510]: expected onCancel to be a block, but it is the number 5
             --> w.yaml:8:11
              |
            8 | onCancel: 5
              |           ^
              = hint: a block is a step, a list of steps, or a mapping with `start` and `steps`

            error[E514]: expected handlerTimeout to be at least 1 ms
             --> w.yaml:9:17
              |
            9 | handlerTimeout: 0s
              |                 ^^
        "#]],
    );
}

#[test]
fn the_cause_is_seen_only_in_its_handler() {
    check_body(
        &format!(
            "{START}onError: [{{name: p, run: \"@actions/p\", inputMapping: {{a: $.cancel.reason}}, skipIf: \"cancel.reason == 'x'\"}}]\n\
             onCancel: [{{name: q, run: \"@actions/p\", inputMapping: {{a: $.error.code}}}}]\n"
        ),
        expect![[r#"
            error[E508]: invalid path "$.cancel.reason": `$.cancel` is available only in the `onCancel` of the workflow
             --> w.yaml:8:58
              |
            8 | onError: [{name: p, run: "@actions/p", inputMapping: {a: $.cancel.reason}, skipIf: "cancel.reason == 'x'"}]
              |                                                          ^^^^^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "cancel.reason == 'x'": there is no name "cancel"
             --> w.yaml:8:84
              |
            8 | onError: [{name: p, run: "@actions/p", inputMapping: {a: $.cancel.reason}, skipIf: "cancel.reason == 'x'"}]
              |                                                                                    ^^^^^^^^^^^^^^^^^^^^^^

            error[E508]: invalid path "$.error.code": `$.error` is available only in `onError` and the `inputMapping` of a fallback
             --> w.yaml:9:59
              |
            9 | onCancel: [{name: q, run: "@actions/p", inputMapping: {a: $.error.code}}]
              |                                                           ^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_wait_in_a_handler_is_compared_with_the_timeout_of_that() {
    check_body(
        &format!(
            "{START}handlerTimeout: PT1M\ntimeout: PT1S\nonError: [{{name: rest, wait: {{duration: PT2M}}}}]\n"
        ),
        expect![[r#"
            warning[E521]: expected at most the 60000 ms of `handlerTimeout`, but this can take 120000 ms
              --> w.yaml:10:41
               |
            10 | onError: [{name: rest, wait: {duration: PT2M}}]
               |                                         ^^^^
               = hint: shorten it, or raise `handlerTimeout`
        "#]],
    );
}

#[test]
fn a_compensation_in_a_handler_gets_a_warning() {
    let undo = "run: \"@actions/a\", compensate: {run: \"@actions/b\"}";
    check_body(
        &format!("{START}onError: [{{name: page, {undo}}}]\n"),
        expect![[r#"
            warning[E524]: onError[0].compensate has no effect in a handler
             --> w.yaml:8:43
              |
            8 | onError: [{name: page, run: "@actions/a", compensate: {run: "@actions/b"}}]
              |                                           ^^^^^^^^^^
              = hint: leave it out: compensations are executed before handlers
        "#]],
    );
    let fallback =
        "run: \"@actions/a\", fallback: {run: \"@actions/b\", compensate: {run: \"@actions/c\"}}";
    check_body(
        &format!("{START}onError: [{{name: page, {fallback}}}]\n"),
        expect![[r#"
            warning[E524]: onError[0].fallback.compensate has no effect in a handler
             --> w.yaml:8:73
              |
            8 | onError: [{name: page, run: "@actions/a", fallback: {run: "@actions/b", compensate: {run: "@actions/c"}}}]
              |                                                                         ^^^^^^^^^^
              = hint: leave it out: compensations are executed before handlers
        "#]],
    );
    // A block inside the handler can drop work, which is then compensated.
    let inside = format!("onError: [{{name: b, block: {{{undo}}}, compensate: true}}]\n");
    check_body(&format!("{START}{inside}"), expect![[r#""#]]);
}
