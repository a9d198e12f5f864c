//! W63, W66: the state of a run.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Merge, Root, StepKind};
use flotilla_engine::ids::StateKey;
use std::fmt::Write;

#[test]
fn a_run_has_a_state_and_steps_write_to_it() {
    let definition = accept_body(
        r#"
state: {total: 0, name: $.input.name, net: {cel: "input.gross / 1.2"}}
steps:
  - name: charge
    run: "@actions/charge"
    set: {total: {cel: "state.total + result.amount"}, last: $.result.id, note: "as it is", n: 1, old: $.state.total}
  - name: ask
    waitForSignal: {type: go, timeoutMs: 1000}
    set: {answer: $.result}
  - name: mark
    set: {done: true, items: [1, {cel: "size(state.items)"}]}
output: $.state
"#,
    );
    let state = definition.state.as_ref().expect("a state");
    assert_eq!((state.paths().count(), state.expressions().count()), (1, 1));
    let [charge, ask, mark] = &definition.steps[..] else {
        panic!("expected three steps");
    };
    let charge = charge.set.as_ref().expect("values");
    let keys: Vec<&str> = charge.keys.iter().map(StateKey::as_str).collect();
    assert_eq!(keys, ["total", "last", "note", "n", "old"]);
    assert_eq!(
        (
            charge.object.paths().count(),
            charge.object.expressions().count()
        ),
        (2, 1)
    );
    let ask = ask.set.as_ref().expect("a value");
    assert_eq!(
        ask.object.paths().next().map(|path| path.root),
        Some(Root::Result)
    );
    assert_eq!(mark.kind, StepKind::Set);
}

#[test]
fn a_state_begins_with_the_input_and_a_result_is_seen_in_set_only() {
    check_body(
        r#"
state: {a: $.steps.start.output, b: {cel: "state.a"}, c: $.flo.run_id}
start:
  run: "@actions/charge"
  inputMapping: {a: $.result, b: {cel: "result"}, c: $.stat.x}
  set: {a: {cel: "reslt"}}
  transitions: {success: flo.Completed, failure: flo.Failed}
"#,
        expect![[r#"
            error[E508]: invalid path "$.steps.start.output": expected it to begin with `$.input` here
             --> w.yaml:4:12
              |
            4 | state: {a: $.steps.start.output, b: {cel: "state.a"}, c: $.flo.run_id}
              |            ^^^^^^^^^^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "state.a": there is no name "state"
             --> w.yaml:4:43
              |
            4 | state: {a: $.steps.start.output, b: {cel: "state.a"}, c: $.flo.run_id}
              |                                           ^^^^^^^^^

            error[E508]: invalid path "$.flo.run_id": expected it to begin with `$.input` here
             --> w.yaml:4:58
              |
            4 | state: {a: $.steps.start.output, b: {cel: "state.a"}, c: $.flo.run_id}
              |                                                          ^^^^^^^^^^^^

            error[E508]: invalid path "$.result": `$.result` is available only in `set`, and in `output` of a step or `output.extract` of the workflow
             --> w.yaml:7:21
              |
            7 |   inputMapping: {a: $.result, b: {cel: "result"}, c: $.stat.x}
              |                     ^^^^^^^^

            error[E513]: invalid expression at column 1 of "result": there is no name "result"
             --> w.yaml:7:40
              |
            7 |   inputMapping: {a: $.result, b: {cel: "result"}, c: $.stat.x}
              |                                        ^^^^^^^^

            error[E508]: invalid path "$.stat.x": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:7:54
              |
            7 |   inputMapping: {a: $.result, b: {cel: "result"}, c: $.stat.x}
              |                                                      ^^^^^^^^
              = hint: did you mean "state"?

            error[E513]: invalid expression at column 1 of "reslt": there is no name "reslt"
             --> w.yaml:8:18
              |
            8 |   set: {a: {cel: "reslt"}}
              |                  ^^^^^^^
              = hint: did you mean `result`?
        "#]],
    );
}

#[test]
fn only_attempts_and_signals_give_values_for_the_state() {
    check_body(
        r#"
state: [1]
start:
  switch: [{when: "input.a", goto: flo.Completed}]
  default: fan
  set: {a: 1}
steps:
  fan:
    parallel: {branches: {one: {run: "@actions/one"}}}
    set: {a: 1}
    transitions: {success: mark, failure: flo.Failed}
  mark:
    set: {}
    retry: {max_attempts: 2}
    transitions: {success: last}
  last: {set: {a: 1}}
"#,
        expect![[r#"
            error[E100]: expected state to be a mapping, but it is a list
             --> w.yaml:4:8
              |
            4 | state: [1]
              |        ^

            error[E100]: expected start to have no `set`, since it is a switch
             --> w.yaml:8:3
              |
            8 |   set: {a: 1}
              |   ^^^

            error[E100]: expected steps.fan to have no `set`, since it has branches
              --> w.yaml:12:5
               |
            12 |     set: {a: 1}
               |     ^^^

            error[E100]: expected steps.mark.set to have 1 to 64 values, but it has 0
              --> w.yaml:15:10
               |
            15 |     set: {}
               |          ^

            error[E100]: expected steps.mark to have no `retry`, since it only sets state
              --> w.yaml:16:5
               |
            16 |     retry: {max_attempts: 2}
               |     ^^^^^

            warning[E303]: no path leads from step "mark" to a terminal
              --> w.yaml:14:3
               |
            14 |   mark:
               |   ^^^^

            warning[E303]: no path leads from step "last" to a terminal
              --> w.yaml:18:3
               |
            18 |   last: {set: {a: 1}}
               |   ^^^^

            warning[E502]: step "last" has no transitions: the run fails when the step ends
              --> w.yaml:18:3
               |
            18 |   last: {set: {a: 1}}
               |   ^^^^
        "#]],
    );
}

#[test]
fn a_step_writes_a_bounded_number_of_values() {
    let mut values = String::new();
    for number in 0..65 {
        write!(values, "k{number}: 1, ").expect("a string takes any text");
    }
    let body = format!("\nsteps:\n  - {{name: mark, set: {{{values}}}}}\n");
    let findings = flotilla_dsl::parse(&format!("{}{body}", crate::HEAD)).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].message,
        "expected steps[0].set to have 1 to 64 values, but it has 65"
    );
}

#[test]
fn a_join_merges_keys_by_words() {
    let definition = accept_body(
        r#"
steps:
  - name: fan
    parallel:
      branches: {left: {set: {n: 1}}, right: {set: {n: 2}}}
      merge: {n: sum, ids: append, low: min, high: max, won: first}
"#,
    );
    let StepKind::Parallel(parallel) = &definition.steps[0].kind else {
        panic!("expected branches");
    };
    let words = parallel
        .merge
        .iter()
        .map(|rule| (rule.key.as_str(), rule.merge));
    let expected = ["n", "ids", "low", "high", "won"]
        .into_iter()
        .zip(Merge::ALL);
    assert!(words.eq(expected));
}

#[test]
fn a_merge_has_keys_and_known_words() {
    check_body(
        r#"
steps:
  - name: fan
    parallel:
      branches: {left: {set: {n: 1}}}
      merge: {n: sun, m: {cel: "1"}}
  - name: none
    parallel:
      branches: {right: {set: {n: 1}}}
      merge: {}
"#,
        expect![[r#"
            error[E100]: expected steps[0].parallel.merge.n to be one of `sum`, `append`, `min`, `max`, `first`, but it is the string "sun"
             --> w.yaml:8:18
              |
            8 |       merge: {n: sun, m: {cel: "1"}}
              |                  ^^^
              = hint: did you mean "sum"?

            error[E100]: expected steps[0].parallel.merge.m to be one of `sum`, `append`, `min`, `max`, `first`, but it is a mapping
             --> w.yaml:8:26
              |
            8 |       merge: {n: sun, m: {cel: "1"}}
              |                          ^

            error[E100]: expected steps[1].parallel.merge to have 1 to 64 values, but it has 0
              --> w.yaml:12:14
               |
            12 |       merge: {}
               |              ^
        "#]],
    );
}
