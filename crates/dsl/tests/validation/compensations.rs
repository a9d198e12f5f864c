//! Compensations (W82, W82a, E519).

use crate::policies::{check_step, run_step};
use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Part, Path, Root, Segment, Setting, StepKind};

#[test]
fn a_compensation_is_a_call_that_sees_the_output() {
    let step =
        run_step("  compensate: {run: \"@actions/b\", inputMapping: $.output.id, on: attempted}\n");
    let undo = step.compensation.expect("a compensation");
    assert!(undo.of_attempted);
    let input = undo.call.input.expect("a mapping");
    let path = Path {
        root: Root::Result,
        segments: vec![Segment::Field("id".to_owned())],
    };
    assert_eq!(input.parts, [Part::Path(path)]);
    match undo.call.retry {
        Setting::Own(retry) => assert_eq!(retry.policy.max_attempts, 3),
        other => panic!("expected a policy, but it is {other:?}"),
    }
    let step = run_step("  compensate: {run: \"@actions/b\", retry: false}\n");
    let undo = step.compensation.expect("a compensation");
    assert_eq!(
        (undo.of_attempted, undo.call.retry),
        (false, Setting::Disabled)
    );
}

#[test]
fn a_fallback_can_have_a_compensation() {
    let step = run_step(
        "  fallback: {run: \"@actions/b\", compensate: {run: \"@actions/c\"}}\n  compensate: {run: \"@actions/d\"}\n",
    );
    assert!(step.fallback.is_some());
    assert!(step.fallback_compensation.is_some());
    assert!(step.compensation.is_some());
}

#[test]
fn a_step_can_undo_its_blocks() {
    let body = "steps:\n  - name: all\n    block: {run: \"@actions/a\"}\n    compensate: true\n  - name: each\n    forEach: {items: $.input.items, do: {run: \"@actions/a\"}}\n    compensate: true\n";
    let definition = accept_body(body);
    let undoes: Vec<bool> = definition
        .steps
        .iter()
        .map(|step| step.undoes_blocks())
        .collect();
    assert_eq!(undoes, [true, true, false, false]);
    assert!(matches!(definition.steps[0].kind, StepKind::Block(_)));
}

#[test]
fn terminals_say_whether_a_run_compensates() {
    let body = "start:\n  run: \"@actions/a\"\n  transitions: {success: Fine, failure: Left}\nterminals:\n  Fine: {status: completed, compensate: true}\n  Left: {status: failed, compensate: false}\n";
    let terminals = accept_body(body).terminals;
    let compensates: Vec<Option<bool>> = terminals.iter().map(|one| one.compensates).collect();
    assert_eq!(compensates, [Some(true), Some(false)]);
}

#[test]
fn compensations_are_checked() {
    check_step(
        "  compensate: {run: \"@actions/b\", compensate: {run: \"@actions/c\"}}\n",
        expect![[r#"
            error[E519]: expected start.compensate to have no `compensate`
             --> w.yaml:7:3
              |
            7 |   compensate: {run: "@actions/b", compensate: {run: "@actions/c"}}
              |   ^^^^^^^^^^
              = hint: a fallback, a compensation or a handler of a step is a single call
        "#]],
    );
    check_step(
        "  compensate: {run: \"@actions/b\", on: failed, inputMapping: $.error.code}\n",
        expect![[r#"
            error[E100]: expected start.compensate.on to be one of `completed`, `attempted`, but it is the string "failed"
             --> w.yaml:7:39
              |
            7 |   compensate: {run: "@actions/b", on: failed, inputMapping: $.error.code}
              |                                       ^^^^^^

            error[E508]: invalid path "$.error.code": `$.error` is available only in `onError` and the `inputMapping` of a fallback
             --> w.yaml:7:61
              |
            7 |   compensate: {run: "@actions/b", on: failed, inputMapping: $.error.code}
              |                                                             ^^^^^^^^^^^^
        "#]],
    );
    check_step(
        "  inputMapping: $.output\n",
        expect![[r#"
        error[E508]: invalid path "$.output": `$.output` is available only in the `inputMapping` of a compensation
         --> w.yaml:7:17
          |
        7 |   inputMapping: $.output
          |                 ^^^^^^^^
    "#]],
    );
    check_body(
        "start:\n  waitForSignal: {type: go, timeoutMs: 5}\n  compensate: {run: \"@actions/b\"}\n  transitions: {success: flo.Completed}\n",
        expect![[r#"
            error[E100]: expected start to have no `compensate`, since it waits for a signal
             --> w.yaml:6:3
              |
            6 |   compensate: {run: "@actions/b"}
              |   ^^^^^^^^^^
        "#]],
    );
    check_body(
        "steps:\n  - name: all\n    block: {run: \"@actions/a\"}\n    compensate: {run: \"@actions/b\"}\n",
        expect![[r#"
            error[E100]: expected steps[0].compensate to be true or false, but it is a mapping
             --> w.yaml:7:17
              |
            7 |     compensate: {run: "@actions/b"}
              |                 ^
        "#]],
    );
}
