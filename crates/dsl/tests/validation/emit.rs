//! W62: steps that append a record to a stream.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Part, StepKind};

#[test]
fn a_step_emits_a_record() {
    let definition = accept_body(
        r#"
steps:
  - {name: tell, emit: {stream: orders, key: $.input.id, payload: {n: 1, total: {cel: "input.n * 2"}}}, skipIf: "input.quiet"}
  - {name: note, emit: {stream: notes, payload: done}}
"#,
    );
    let [tell, note] = &definition.steps[..] else {
        panic!("expected two steps");
    };
    let (StepKind::Emit(emit), StepKind::Emit(other)) = (&tell.kind, &note.kind) else {
        panic!("expected two records");
    };
    assert_eq!(
        (emit.stream.as_str(), other.stream.as_str()),
        ("orders", "notes")
    );
    assert_eq!(emit.key.as_ref().map(|key| key.paths().count()), Some(1));
    assert_eq!(emit.payload.expressions().count(), 1);
    assert_eq!(other.payload.parts, [Part::Literal("\"done\"".to_owned())]);
    assert!(other.key.is_none() && tell.skip_if.is_some());
}

#[test]
fn a_record_needs_a_stream_and_a_payload_and_excludes_what_other_steps_have() {
    check_body(
        r#"
steps:
  - {name: none, emit: {}}
  - {name: bad, emit: {stream: "a b", payload: $.inptu, headers: {}}}
  - {name: both, run: "@actions/charge", emit: {stream: orders, payload: 1}}
  - {name: more, emit: {stream: orders, payload: 1}, retry: {max_attempts: 2}, inputMapping: {a: 1}, default: both, set: {a: 1}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].emit to have `stream`, but it is missing
             --> w.yaml:5:18
              |
            5 |   - {name: none, emit: {}}
              |                  ^^^^

            error[E100]: expected steps[0].emit to have `payload`, but it is missing
             --> w.yaml:5:18
              |
            5 |   - {name: none, emit: {}}
              |                  ^^^^

            error[E100]: expected a stream name to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is "a b"
             --> w.yaml:6:32
              |
            6 |   - {name: bad, emit: {stream: "a b", payload: $.inptu, headers: {}}}
              |                                ^^^^^

            error[E508]: invalid path "$.inptu": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:6:48
              |
            6 |   - {name: bad, emit: {stream: "a b", payload: $.inptu, headers: {}}}
              |                                                ^^^^^^^
              = hint: did you mean "input"?

            error[E100]: unknown key "headers" at steps[1].emit
             --> w.yaml:6:57
              |
            6 |   - {name: bad, emit: {stream: "a b", payload: $.inptu, headers: {}}}
              |                                                         ^^^^^^^
              = hint: the known keys here are stream, key, payload

            error[E100]: expected steps[2] to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has `run` and `emit`
             --> w.yaml:7:5
              |
            7 |   - {name: both, run: "@actions/charge", emit: {stream: orders, payload: 1}}
              |     ^

            error[E100]: expected steps[3] to have no `retry`, since it appends a record
             --> w.yaml:8:54
              |
            8 |   - {name: more, emit: {stream: orders, payload: 1}, retry: {max_attempts: 2}, inputMapping: {a: 1}, default: both, set:…
              |                                                      ^^^^^

            error[E100]: expected steps[3] to have no `inputMapping`, since it appends a record
             --> w.yaml:8:80
              |
            8 | …it: {stream: orders, payload: 1}, retry: {max_attempts: 2}, inputMapping: {a: 1}, default: both, set: {a: 1}}
              |                                                              ^^^^^^^^^^^^

            error[E100]: expected steps[3] to have no `default`, since it is not a switch
             --> w.yaml:8:102
              |
            8 | …ayload: 1}, retry: {max_attempts: 2}, inputMapping: {a: 1}, default: both, set: {a: 1}}
              |                                                              ^^^^^^^

            error[E100]: expected steps[3] to have no `set`, since it appends a record
             --> w.yaml:8:117
              |
            8 | …ry: {max_attempts: 2}, inputMapping: {a: 1}, default: both, set: {a: 1}}
              |                                                              ^^^
        "#]],
    );
}

#[test]
fn in_a_graph_a_record_needs_a_transition_for_success() {
    check_body(
        r#"
start: {emit: {stream: orders, payload: 1}, transitions: {failure: next}}
steps:
  next: {emit: {stream: orders, payload: 1}}
"#,
        expect![[r#"
            warning[E303]: no path leads from step "start" to a terminal
             --> w.yaml:4:1
              |
            4 | start: {emit: {stream: orders, payload: 1}, transitions: {failure: next}}
              | ^^^^^

            warning[E502]: outcome `success` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start: {emit: {stream: orders, payload: 1}, transitions: {failure: next}}
              | ^^^^^
              = hint: add a transition for `success`

            warning[E303]: no path leads from step "next" to a terminal
             --> w.yaml:6:3
              |
            6 |   next: {emit: {stream: orders, payload: 1}}
              |   ^^^^

            warning[E502]: step "next" has no transitions: the run fails when the step ends
             --> w.yaml:6:3
              |
            6 |   next: {emit: {stream: orders, payload: 1}}
              |   ^^^^
        "#]],
    );
}

#[test]
fn a_key_that_is_always_the_same_is_a_string_or_null() {
    check_body(
        r#"
steps:
  - {name: number, emit: {stream: orders, key: 5, payload: 1}}
  - {name: empty, emit: {stream: orders, key: "", payload: 1}}
  - {name: map, emit: {stream: orders, key: {a: 1}, payload: 1}}
  - {name: null-key, emit: {stream: orders, key: null, payload: 1}}
  - {name: text, emit: {stream: orders, key: a, payload: 1}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].emit.key to be a string, but it is the number 5
             --> w.yaml:5:48
              |
            5 |   - {name: number, emit: {stream: orders, key: 5, payload: 1}}
              |                                                ^

            error[E100]: expected a partition key to be 1 to 256 bytes without control characters, but it is ""
             --> w.yaml:6:47
              |
            6 |   - {name: empty, emit: {stream: orders, key: "", payload: 1}}
              |                                               ^^

            error[E100]: expected steps[2].emit.key to be a string, but it is a mapping
             --> w.yaml:7:45
              |
            7 |   - {name: map, emit: {stream: orders, key: {a: 1}, payload: 1}}
              |                                             ^
        "#]],
    );
}
