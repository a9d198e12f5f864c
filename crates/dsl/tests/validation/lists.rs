//! W50: `steps` as a list (E105, E510).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Block, BlockForm, BlockIndex, StepIndex};

#[test]
fn the_steps_of_a_list_follow_each_other() {
    let definition = accept_body(
        r#"
        steps:
          - {name: reserve, run: "@actions/reserve"}
          - {name: ask, waitForSignal: {type: approval, timeoutMs: 1000}}
          - name: ship
            run: "@actions/ship"
            transitions: {failure: start, lost: reserve}
        "#,
    );
    let list = Block {
        form: BlockForm::List,
        start: StepIndex::START,
        opener: None,
        output: None,
    };
    assert_eq!(definition.blocks, [list]);
    let steps = definition.steps.iter();
    let shown: Vec<_> = steps.map(|step| (step.name.as_str(), step.next)).collect();
    assert_eq!(
        shown,
        [
            ("reserve", Some(StepIndex(1))),
            ("ask", Some(StepIndex(2))),
            ("ship", None)
        ]
    );
    assert!(
        definition
            .steps
            .iter()
            .all(|step| step.block == BlockIndex::ROOT)
    );
    let lines = definition.steps[2].transitions.iter();
    let targets: Vec<_> = lines.map(|line| line.target).collect();
    let start = flotilla_engine::definition::Target::Step(StepIndex::START);
    assert_eq!(
        targets,
        [start, start],
        "`start` is the first step of a list"
    );
}

#[test]
fn e510_a_list_beside_start() {
    check_body(
        r#"
        start: {run: "@actions/a"}
        steps:
          - {name: b, run: "@actions/b"}
        "#,
        expect![[r#"
            error[E510]: expected no `start` beside a list of steps, whose first one is the start step
             --> w.yaml:4:1
              |
            4 | start: {run: "@actions/a"}
              | ^^^^^
              = hint: move it to the top of the list, with a `name:`
        "#]],
    );
}

#[test]
fn e510_an_empty_list() {
    check_body(
        "steps: []\n",
        expect![[r#"
        error[E510]: expected a list of steps, but it is empty
         --> w.yaml:4:8
          |
        4 | steps: []
          |        ^
    "#]],
    );
}

#[test]
fn a_step_of_a_list_has_a_name_of_its_own() {
    check_body(
        r#"
        steps:
          - {run: "@actions/a"}
          - {name: b, run: "@actions/b"}
          - {name: b, run: "@actions/b"}
          - {name: start, run: "@actions/c"}
          - {name: 7, run: "@actions/d"}
          - e
        "#,
        expect![[r#"
            error[E100]: expected steps[0] to have `name`, but it is missing
             --> w.yaml:5:5
              |
            5 |   - {run: "@actions/a"}
              |     ^

            error[E105]: duplicate step "b"
             --> w.yaml:7:12
              |
            7 |   - {name: b, run: "@actions/b"}
              |            ^
              = hint: the first one is at line 6

            error[E105]: the step name "start" is reserved for the start step
             --> w.yaml:8:12
              |
            8 |   - {name: start, run: "@actions/c"}
              |            ^^^^^
              = hint: `start` is the name of the workflow's first step

            error[E100]: expected steps[4].name to be a string, but it is the number 7
             --> w.yaml:9:12
              |
            9 |   - {name: 7, run: "@actions/d"}
              |            ^
              = hint: quote it: "7"

            error[E100]: expected steps[5] to be a mapping, but it is the string "e"
              --> w.yaml:10:5
               |
            10 |   - e
               |     ^
        "#]],
    );
}

#[test]
fn the_lints_know_where_a_list_leads() {
    check_body(
        r#"
        terminals: {Unused: {status: failed}}
        steps:
          - {name: a, run: "@actions/a", transitions: {success: c, failure: c}}
          - {name: b, run: "@actions/b"}
          - {name: c, run: "@actions/c", transitions: {success: c, failure: c}}
        "#,
        expect![[r#"
            warning[E302]: no transition reaches the terminal "Unused"
             --> w.yaml:4:13
              |
            4 | terminals: {Unused: {status: failed}}
              |             ^^^^^^

            warning[E303]: no path leads from step "a" to a terminal
             --> w.yaml:6:12
              |
            6 |   - {name: a, run: "@actions/a", transitions: {success: c, failure: c}}
              |            ^

            warning[E301]: step "b" cannot be reached from the start
             --> w.yaml:7:12
              |
            7 |   - {name: b, run: "@actions/b"}
              |            ^

            warning[E303]: no path leads from step "c" to a terminal
             --> w.yaml:8:12
              |
            8 |   - {name: c, run: "@actions/c", transitions: {success: c, failure: c}}
              |            ^
        "#]],
    );
}
