//! E101–E103, E105, E107, E108: required values, and names that clash.

use crate::{accept, accept_block, accept_body, check, check_body};
use expect_test::expect;
use flotilla_engine::definition::Idempotency;

#[test]
fn e101_e102_e103_e108_missing_keys() {
    check(
        "description: nothing else\n",
        expect![[r#"
            error[E101]: expected a name at the top level, but it is missing
             --> w.yaml:1:1
              |
            1 | description: nothing else
              | ^

            error[E102]: expected a version at the top level, but it is missing
             --> w.yaml:1:1
              |
            1 | description: nothing else
              | ^

            error[E103]: expected a start step at the top level, but it is missing
             --> w.yaml:1:1
              |
            1 | description: nothing else
              | ^
              = hint: add `start:` with `run:` or `waitForSignal:`, or make `steps:` a list

            error[E108]: expected a kind at the top level, but it is missing
             --> w.yaml:1:1
              |
            1 | description: nothing else
              | ^
              = hint: add `kind: Workflow`
        "#]],
    );
}

#[test]
fn e101_e102_e103_e108_empty_keys() {
    check(
        r#"
        kind:
        name: ""
        version: ''
        start:
        "#,
        expect![[r#"
            error[E108]: expected a kind at the top level, but it is empty
             --> w.yaml:1:1
              |
            1 | kind:
              | ^^^^

            error[E101]: expected a name at the top level, but it is empty
             --> w.yaml:2:7
              |
            2 | name: ""
              |       ^^

            error[E102]: expected a version at the top level, but it is empty
             --> w.yaml:3:10
              |
            3 | version: ''
              |          ^^

            error[E103]: expected a start step, but it is empty
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^
        "#]],
    );
    check(
        r#"
        kind: Workflow
        name: w
        version: "1"
        start: {}
        "#,
        expect![[r#"
            error[E103]: expected a start step, but it is empty
             --> w.yaml:4:8
              |
            4 | start: {}
              |        ^
        "#]],
    );
}

#[test]
fn e101_a_name_of_257_bytes() {
    let text = format!(
        "kind: Workflow\nname: {}\nversion: \"1\"\n{}",
        "n".repeat(257),
        crate::START
    );
    let finding = &flotilla_dsl::parse(&text).findings[0];
    assert_eq!(finding.code.as_str(), "E101");
    assert_eq!(
        finding.message,
        "expected name to be at most 256 bytes, but it is 257"
    );
    accept(&text.replace("nn", "n"));
}

#[test]
fn e105_duplicate_and_reserved_step_names() {
    check_body(
        r#"
        start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
        steps:
          a: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
          a: {run: "@actions/b", transitions: {success: flo.Completed, failure: flo.Failed}}
          start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
          _start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E105]: duplicate step "a"
             --> w.yaml:7:3
              |
            7 |   a: {run: "@actions/b", transitions: {success: flo.Completed, failure: flo.Failed}}
              |   ^
              = hint: the first one is at line 6

            error[E105]: the step name "start" is reserved for the start step
             --> w.yaml:8:3
              |
            8 |   start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
              |   ^^^^^
              = hint: `start` is the name of the workflow's first step

            error[E105]: the step name "_start" is reserved for the start step
             --> w.yaml:9:3
              |
            9 |   _start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
              |   ^^^^^^
              = hint: `start` is the name of the workflow's first step

            warning[E301]: step "start" cannot be reached from the start
             --> w.yaml:8:3
              |
            8 |   start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
              |   ^^^^^

            warning[E301]: step "_start" cannot be reached from the start
             --> w.yaml:9:3
              |
            9 |   _start: {run: "@actions/a", transitions: {success: a, failure: flo.Failed}}
              |   ^^^^^^
        "#]],
    );
}

#[test]
fn e107_terminals_that_clash() {
    check_body(
        r#"
        terminals:
          A: {status: failed}
          A: {status: failed}
          flo.Failed: {status: failed}
          flo.Mine: {status: failed}
          b: {status: failed}
          start: {status: failed}
        start: {run: "@actions/a", transitions: {success: b, failure: A}}
        steps:
          b: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E107]: duplicate terminal "A"
             --> w.yaml:6:3
              |
            6 |   A: {status: failed}
              |   ^
              = hint: the first one is at line 5

            error[E107]: the terminal "flo.Failed" is built in
             --> w.yaml:7:3
              |
            7 |   flo.Failed: {status: failed}
              |   ^^^^^^^^^^

            error[E107]: the terminal name "flo.Mine" begins with `flo.`, as only built-in ones do
             --> w.yaml:8:3
              |
            8 |   flo.Mine: {status: failed}
              |   ^^^^^^^^

            error[E107]: "b" is the name of a step and of a terminal
             --> w.yaml:9:3
              |
            9 |   b: {status: failed}
              |   ^

            error[E107]: "start" is the name of a step and of a terminal
              --> w.yaml:10:3
               |
            10 |   start: {status: failed}
               |   ^^^^^

            warning[E302]: no transition reaches the terminal "flo.Failed"
             --> w.yaml:7:3
              |
            7 |   flo.Failed: {status: failed}
              |   ^^^^^^^^^^

            warning[E302]: no transition reaches the terminal "flo.Mine"
             --> w.yaml:8:3
              |
            8 |   flo.Mine: {status: failed}
              |   ^^^^^^^^

            warning[E302]: no transition reaches the terminal "b"
             --> w.yaml:9:3
              |
            9 |   b: {status: failed}
              |   ^

            warning[E302]: no transition reaches the terminal "start"
              --> w.yaml:10:3
               |
            10 |   start: {status: failed}
               |   ^^^^^
        "#]],
    );
}

#[test]
fn e108_another_kind() {
    check(
        r#"
        kind: Pipeline
        name: w
        version: "1"
        start: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E108]: expected kind to be `Workflow`, but it is the string "Pipeline"
             --> w.yaml:1:7
              |
            1 | kind: Pipeline
              |       ^^^^^^^^
        "#]],
    );
}

#[test]
fn the_keys_of_the_top_level_reach_the_definition() {
    let definition = accept_block(
        r#"
        description: Orders
        namespace: prod
        idempotency: optional
        retentionMs: 1000
        input: {type: object}
        output: $.steps.start.output.id
        "#,
    );
    assert_eq!(definition.description.as_deref(), Some("Orders"));
    assert_eq!(
        definition.namespace.as_ref().map(|name| name.as_str()),
        Some("prod")
    );
    assert_eq!(definition.retention_ms, Some(1_000));
    assert_eq!(
        definition.input_schema.as_deref(),
        Some("{\"type\":\"object\"}")
    );
    assert!(definition.output.is_some());
}

#[test]
fn the_start_step_comes_first_wherever_it_stands() {
    let definition = accept_body(
        r#"
        steps:
          b: {run: "@actions/a", transitions: {success: flo.Completed, failure: start}}
        start: {run: "@actions/a", transitions: {success: b, failure: _start}}
        "#,
    );
    let names: Vec<&str> = definition
        .steps
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(names, ["start", "b"]);
}

#[test]
fn idempotency_is_one_of_three_words_and_none_by_default() {
    assert_eq!(accept_block("").idempotency, Idempotency::None);
    for (word, mode) in [
        ("none", Idempotency::None),
        ("optional", Idempotency::Optional),
        ("required", Idempotency::Required),
    ] {
        let definition = accept_block(&format!("idempotency: {word}\n"));
        assert_eq!(definition.idempotency, mode, "{word}");
    }
}

#[test]
fn a_version_is_any_text() {
    for version in ["2.0.0", "spring 2026", "überprüft/3:b", "0"] {
        let text = format!(
            "kind: Workflow\nname: w\nversion: \"{version}\"\n{}",
            crate::START
        );
        assert_eq!(accept(&text).version.as_str(), version);
    }
}
