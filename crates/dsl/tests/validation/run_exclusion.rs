//! Targets and locks (W85).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Expression, LockSource, Part, Path, Root, Segment};

const STEPS: &str = "steps:\n  - {name: a, run: \"@actions/a\"}\n";

#[test]
fn a_workflow_has_a_target_and_locks() {
    let none = accept_body(STEPS);
    assert_eq!((none.target, none.locks), (None, vec![]));
    let one = accept_body(&format!(
        "target: \"$.input.vm\"\nlocks: (modify|destroy)$\n{STEPS}"
    ));
    let path = Path {
        root: Root::Input,
        segments: vec![Segment::Field("vm".to_owned())],
    };
    let target = one.target.expect("a target");
    assert_eq!(target.parts, [Part::Path(path)]);
    let [LockSource::Literal(lock)] = &one.locks[..] else {
        panic!("expected one literal lock, but there are {:?}", one.locks);
    };
    assert_eq!(lock.pattern, "(modify|destroy)$");
    for (target, is_locked) in [("vm-1/modify", true), ("vm-1/modify/disk", false)] {
        assert_eq!(lock.program.is_match(target), is_locked, "{target}");
    }
    let several = accept_body(&format!(
        "target: {{cel: \"input.vm + meta.zone\"}}\nlocks: [^a$, $.input.lock, {{cel: \"'^' + flo.workflow\"}}]\n{STEPS}"
    ));
    let texts: Vec<&str> = several
        .target
        .iter()
        .flat_map(|target| target.expressions().map(text))
        .collect();
    assert_eq!(texts, ["input.vm + meta.zone"]);
    let is_computed = |lock: &LockSource| matches!(lock, LockSource::Computed(_));
    let computed: Vec<bool> = several.locks.iter().map(is_computed).collect();
    assert_eq!(computed, [false, true, true]);
}

fn text(expression: &Expression) -> &str {
    &expression.text
}

#[test]
fn targets_and_locks_are_checked() {
    check_body(
        &format!(
            "target: $.state.vm\nlocks:\n  - (a\n  - 7\n  - {{cel: steps.a.output}}\n  - '(?=a)'\n{STEPS}"
        ),
        expect![[r#"
            error[E508]: invalid path "$.state.vm": expected it to begin with `$.input`, `$.meta` or `$.flo` here
             --> w.yaml:4:9
              |
            4 | target: $.state.vm
              |         ^^^^^^^^^^

            error[E518]: invalid regular expression: unclosed group
             --> w.yaml:6:5
              |
            6 |   - (a
              |     ^^

            error[E100]: expected locks[1] to be a string, but it is the number 7
             --> w.yaml:7:5
              |
            7 |   - 7
              |     ^
              = hint: quote it: "7"

            error[E513]: invalid expression at column 1 of "steps.a.output": there is no name "steps"
             --> w.yaml:8:11
              |
            8 |   - {cel: steps.a.output}
              |           ^^^^^^^^^^^^^^

            error[E518]: invalid regular expression: look-around, including look-ahead and look-behind, is not supported
             --> w.yaml:9:5
              |
            9 |   - '(?=a)'
              |     ^^^^^^^
        "#]],
    );
    let long = "x".repeat(257);
    check_body(
        &format!("locks: {long}\n{STEPS}"),
        expect![[r#"
        error[E518]: expected a lock of at most 256 bytes, but it has 257
         --> w.yaml:4:8
          |
        4 | locks: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#]],
    );
    check_body(
        &format!("locks: [a, b, c, d, e]\n{STEPS}"),
        expect![[r#"
            error[E100]: expected at most 4 items in locks, but it has 5
             --> w.yaml:4:8
              |
            4 | locks: [a, b, c, d, e]
              |        ^
        "#]],
    );
    check_body(
        &format!("locks: '(((a{{100}}){{100}}){{100}})'\n{STEPS}"),
        expect![[r#"
            error[E518]: expected a regular expression of at most 4096 instructions, but it has more
             --> w.yaml:4:8
              |
            4 | locks: '(((a{100}){100}){100})'
              |        ^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}
