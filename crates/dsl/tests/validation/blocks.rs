//! W69: steps that execute a block.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{BlockForm, StepKind};

#[test]
fn a_step_executes_a_block_of_each_form() {
    let definition = accept_body(
        r#"
steps:
  - {name: single, block: {run: "@actions/a"}, retry: {max_attempts: 2}}
  - {name: list, block: [{name: one, run: "@actions/a"}, {name: two, set: {n: 1}}]}
  - name: graph
    block:
      start: {run: "@actions/a", transitions: {success: inner, failure: flo.End.lost}}
      steps:
        inner: {block: {block: {name: deep, run: "@actions/a"}}, transitions: {success: flo.Completed, failure: flo.Failed}}
      output: {a: $.steps.deep.output}
    transitions: {lost: single}
"#,
    );
    let blocks = definition.steps.iter().filter_map(|step| {
        let StepKind::Block(block) = &step.kind else {
            return None;
        };
        let inner = definition.block(block.body.block);
        let first = &definition.step(inner.start).name;
        let attempts = block.retry.as_ref().map(|retry| retry.policy.max_attempts);
        Some((
            step.name.to_string(),
            inner.form,
            first.to_string(),
            attempts,
        ))
    });
    let expected = [
        ("single", BlockForm::Single, "single-block", Some(2)),
        ("list", BlockForm::List, "one", None),
        ("graph", BlockForm::Graph, "graph-block", None),
        ("inner", BlockForm::Single, "inner-block", None),
        ("inner-block", BlockForm::Single, "deep", None),
    ];
    let expected = expected
        .map(|(name, form, first, attempts)| (name.to_owned(), form, first.to_owned(), attempts));
    assert_eq!(blocks.collect::<Vec<_>>(), expected);
}

#[test]
fn a_block_step_has_a_block_and_no_target() {
    check_body(
        r#"
steps:
  - {name: number, block: 7}
  - {name: empty, block: []}
  - {name: both, block: {run: "@actions/a"}, run: "@actions/a"}
  - {name: more, block: {run: "@actions/a"}, poll: {}, set: {n: 1}}
  - {name: same, block: {run: "@actions/a"}}
  - {name: same-block, run: "@actions/a"}
"#,
        expect![[r#"
            error[E510]: expected steps[0].block to be a block, but it is the number 7
             --> w.yaml:5:27
              |
            5 |   - {name: number, block: 7}
              |                           ^
              = hint: a block is a step, a list of steps, or a mapping with `start` and `steps`

            error[E510]: expected a list of steps, but it is empty
             --> w.yaml:6:26
              |
            6 |   - {name: empty, block: []}
              |                          ^

            error[E100]: expected steps[2] to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has `run` and `block`
             --> w.yaml:7:5
              |
            7 |   - {name: both, block: {run: "@actions/a"}, run: "@actions/a"}
              |     ^

            error[E100]: expected steps[3] to have no `poll`, since it has a block
             --> w.yaml:8:46
              |
            8 |   - {name: more, block: {run: "@actions/a"}, poll: {}, set: {n: 1}}
              |                                              ^^^^

            error[E100]: expected steps[3] to have no `set`, since it has a block
             --> w.yaml:8:56
              |
            8 |   - {name: more, block: {run: "@actions/a"}, poll: {}, set: {n: 1}}
              |                                                        ^^^

            error[E105]: duplicate step "same-block"
              --> w.yaml:10:12
               |
            10 |   - {name: same-block, run: "@actions/a"}
               |            ^^^^^^^^^^
               = hint: a branch at line 9 has this name: branches and steps share one set of names
        "#]],
    );
}

#[test]
fn a_block_in_a_graph_needs_transitions() {
    check_body(
        r#"
start: {block: {run: "@actions/a"}, transitions: {success: flo.Completed}}
"#,
        expect![[r#"
            warning[E502]: outcome `failure` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start: {block: {run: "@actions/a"}, transitions: {success: flo.Completed}}
              | ^^^^^
              = hint: add a transition for `failure`
        "#]],
    );
}
