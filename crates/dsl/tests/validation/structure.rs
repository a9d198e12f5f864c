//! E100: the form of the document.

use crate::{check, check_block, check_body};
use expect_test::expect;

#[test]
fn e100_text_that_is_not_yaml() {
    check(
        r#"
        kind: Workflow
        name: [a, b
        version: x
        "#,
        expect![[r#"
            error[E100]: not YAML: illegal placement of ':' indicator
             --> w.yaml:3:8
              |
            3 | version: x
              |        ^
        "#]],
    );
}

#[test]
fn e100_a_document_that_is_not_a_mapping() {
    check(
        "- kind: Workflow\n",
        expect![[r#"
        error[E100]: expected the definition to be a mapping, but it is a list
         --> w.yaml:1:1
          |
        1 | - kind: Workflow
          | ^
    "#]],
    );
    check(
        "",
        expect![[r#"
            error[E100]: expected a definition, but the document is empty
             --> w.yaml:1:1
              |
            1 |
              | ^
        "#]],
    );
    check(
        "# only a comment\n",
        expect![[r#"
        error[E100]: expected a definition, but the document is empty
         --> w.yaml:1:1
          |
        1 | # only a comment
          | ^
    "#]],
    );
}

#[test]
fn e100_an_unknown_key() {
    check_body(
        r#"
        start:
          run: "@actions/a"
          transition:
            success: flo.Completed
        "#,
        expect![[r#"
            error[E100]: unknown key "transition" at start
             --> w.yaml:6:3
              |
            6 |   transition:
              |   ^^^^^^^^^^
              = hint: did you mean "transitions"?
        "#]],
    );
    check_block(
        "retries: 3\n",
        expect![[r#"
            error[E100]: unknown key "retries" at the top level
             --> w.yaml:4:1
              |
            4 | retries: 3
              | ^^^^^^^
              = hint: the known keys here are kind, name, version, description, metadata, namespace, idempotency, retention_ms, timeout, timeoutMs, handlerTimeout, handlerTimeoutMs, maxSteps, loopWarnAfter, retryRun, input, inputs, output, defaults, state, concurrency, target, locks, terminals, searchAttributes, schedule, trigger, triggers, plans, start, steps, onError, onCancel
        "#]],
    );
}

#[test]
fn e100_a_merge_key() {
    check_body(
        r#"
        start: &s {run: "@actions/a", transitions: {success: b, failure: b}}
        steps:
          b:
            <<: *s
        "#,
        expect![[r#"
            error[E100]: expected steps.b to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has no such key
             --> w.yaml:6:3
              |
            6 |   b:
              |   ^

            error[E100]: unknown key "<<" at steps.b
             --> w.yaml:7:5
              |
            7 |     <<: *s
              |     ^^
              = hint: merge keys are not supported; write the keys out
        "#]],
    );
}

#[test]
fn e100_a_duplicate_key() {
    check_block(
        "name: again\n",
        expect![[r#"
        error[E100]: duplicate key "name"
         --> w.yaml:4:1
          |
        4 | name: again
          | ^^^^
          = hint: the first one is at line 2
    "#]],
    );
}

#[test]
fn e100_both_spellings_of_a_key() {
    check_block(
        r#"
        searchAttributes: []
        search_attributes: []
        "#,
        expect![[r#"
            error[E100]: "searchAttributes" and "search_attributes" at the top level are the same key
             --> w.yaml:5:1
              |
            5 | search_attributes: []
              | ^^^^^^^^^^^^^^^^^
              = hint: keep one of them
        "#]],
    );
    check_body(
        "start: {run: \"@actions/a\", input: {}, inputMapping: {}, transitions: {success: flo.Completed, failure: flo.Failed}}\n",
        expect![[r#"
            error[E100]: "input" and "inputMapping" at start are the same key
             --> w.yaml:4:39
              |
            4 | start: {run: "@actions/a", input: {}, inputMapping: {}, transitions: {success: flo.Completed, failure: flo.Failed}}
              |                                       ^^^^^^^^^^^^
              = hint: keep one of them
        "#]],
    );
}

#[test]
fn e100_an_unquoted_version() {
    check(
        r#"
        kind: Workflow
        name: w
        version: 1.0
        start: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E100]: expected version to be a string, but it is the number 1.0
             --> w.yaml:3:10
              |
            3 | version: 1.0
              |          ^^^
              = hint: quote it: "1.0"
        "#]],
    );
}

#[test]
fn e100_wrong_types() {
    check_block(
        r#"
        description: true
        idempotency: requierd
        retention_ms: "5"
        searchAttributes: {}
        terminals: [A]
        schedule: soon
        "#,
        expect![[r#"
            error[E100]: expected description to be a string, but it is the boolean true
             --> w.yaml:4:14
              |
            4 | description: true
              |              ^^^^
              = hint: quote it: "true"

            error[E100]: expected idempotency to be one of `none`, `optional`, `required`, but it is the string "requierd"
             --> w.yaml:5:14
              |
            5 | idempotency: requierd
              |              ^^^^^^^^
              = hint: did you mean "required"?

            error[E100]: expected retention_ms to be a whole number, but it is the string "5"
             --> w.yaml:6:15
              |
            6 | retention_ms: "5"
              |               ^^^
              = hint: write it without quotes

            error[E100]: expected searchAttributes to be a list, but it is a mapping
             --> w.yaml:7:19
              |
            7 | searchAttributes: {}
              |                   ^

            error[E100]: expected terminals to be a mapping, but it is a list
             --> w.yaml:8:12
              |
            8 | terminals: [A]
              |            ^

            error[E100]: expected schedule to be a mapping, but it is the string "soon"
             --> w.yaml:9:11
              |
            9 | schedule: soon
              |           ^^^^
        "#]],
    );
}

#[test]
fn e100_a_number_out_of_range() {
    check_block(
        "retention_ms: 0\n",
        expect![[r#"
            error[E100]: expected retention_ms to be from 1 to 316224000000, but it is the number 0
             --> w.yaml:4:15
              |
            4 | retention_ms: 0
              |               ^
        "#]],
    );
    check_block(
        "retention_ms: 99999999999999999999\n",
        expect![[r#"
            error[E100]: expected retention_ms to be from 1 to 316224000000, but it is the number 99999999999999999999
             --> w.yaml:4:15
              |
            4 | retention_ms: 99999999999999999999
              |               ^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check_block(
        "retention_ms: 1.5\n",
        expect![[r#"
        error[E100]: expected retention_ms to be a whole number, but it is the number 1.5
         --> w.yaml:4:15
          |
        4 | retention_ms: 1.5
          |               ^^^
    "#]],
    );
}

#[test]
fn e100_a_step_that_neither_runs_nor_waits_or_both() {
    check_body(
        "start: {transitions: {success: flo.Completed}}\n",
        expect![[r#"
            error[E100]: expected start to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has no such key
             --> w.yaml:4:1
              |
            4 | start: {transitions: {success: flo.Completed}}
              | ^^^^^
        "#]],
    );
    check_body(
        "start: {run: \"@actions/a\", waitForSignal: {type: t, timeoutMs: 1}, transitions: {success: flo.Completed}}\n",
        expect![[r#"
            error[E100]: expected start to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has `run` and `waitForSignal`
             --> w.yaml:4:1
              |
            4 | start: {run: "@actions/a", waitForSignal: {type: t, timeoutMs: 1}, transitions: {success: flo.Completed}}
              | ^^^^^
        "#]],
    );
}

#[test]
fn e100_a_wait_without_a_type() {
    check_body(
        r#"
        start:
          waitForSignal:
            timeoutMs: 5
          transitions: {success: flo.Completed}
        "#,
        expect![[r#"
            error[E100]: expected start.waitForSignal to have `type`, but it is missing
             --> w.yaml:5:3
              |
            5 |   waitForSignal:
              |   ^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn e100_retry_poll_or_a_mapping_on_a_wait_step() {
    check_body(
        r#"
        start:
          waitForSignal: {type: t, timeoutMs: 5}
          retry: {}
          poll: {}
          inputMapping: {}
          transitions: {success: flo.Completed}
        "#,
        expect![[r#"
            error[E100]: expected start to have no `retry`, since it waits for a signal
             --> w.yaml:6:3
              |
            6 |   retry: {}
              |   ^^^^^

            error[E100]: expected start to have no `poll`, since it waits for a signal
             --> w.yaml:7:3
              |
            7 |   poll: {}
              |   ^^^^

            error[E100]: expected start to have no `inputMapping`, since it waits for a signal
             --> w.yaml:8:3
              |
            8 |   inputMapping: {}
              |   ^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn e100_malformed_names() {
    check(
        r#"
        kind: Workflow
        name: a:b
        version: "1"
        namespace: -x
        start: {run: "@actions/a", transitions: {success: 1st, "no way": flo.Failed, failure: flo.Failed}}
        steps:
          1st: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E100]: expected a workflow name to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is "a:b"
             --> w.yaml:2:7
              |
            2 | name: a:b
              |       ^^^

            error[E100]: expected a namespace to be a letter, then letters, digits, `.`, `_` or `-`, not ending in `-`, at most 63 bytes, but it is "-x"
             --> w.yaml:4:12
              |
            4 | namespace: -x
              |            ^^

            error[E100]: expected an outcome to be 1 to 64 letters, digits, `_`, `-` or `.`, but it is "no way"
             --> w.yaml:5:56
              |
            5 | start: {run: "@actions/a", transitions: {success: 1st, "no way": flo.Failed, failure: flo.Failed}}
              |                                                        ^^^^^^^^

            error[E100]: expected a step name to be a letter or `_`, then letters, digits, `_` or `-`, at most 256 bytes, but it is "1st"
             --> w.yaml:7:3
              |
            7 |   1st: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
              |   ^^^
        "#]],
    );
}

#[test]
fn e100_an_input_that_is_not_a_json_schema() {
    check_block(
        "input: {type: objct}\n",
        expect![[r#"
        error[E100]: expected input to be a JSON Schema, but it is not valid under any of the schemas listed in the 'anyOf' keyword
         --> w.yaml:4:15
          |
        4 | input: {type: objct}
          |               ^^^^^
          = hint: JSON Schema 2020-12, without references to other documents
    "#]],
    );
    check_block(
        "input: '{\"type\": '\n",
        expect![[r#"
        error[E100]: expected input to be JSON text, but it is not: EOF while parsing a value
         --> w.yaml:4:17
          |
        4 | input: '{"type": '
          |                 ^
    "#]],
    );
    check_block(
        "input: 5\n",
        expect![[r#"
        error[E100]: expected input to be a JSON Schema, but it is the number 5
         --> w.yaml:4:8
          |
        4 | input: 5
          |        ^
    "#]],
    );
    check_block(
        "input: {$ref: \"https://example.com/schema.json\"}\n",
        expect![[r#"
            error[E100]: expected input to be a JSON Schema, but it refers to another document, "https://example.com/schema.json"
             --> w.yaml:4:8
              |
            4 | input: {$ref: "https://example.com/schema.json"}
              |        ^
              = hint: JSON Schema 2020-12, without references to other documents
        "#]],
    );
}

#[test]
fn e100_a_mapping_that_is_not_json() {
    check_body(
        r#"
        start:
          run: "@actions/a"
          inputMapping: '{"a": $.input.a}'
          transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E100]: expected start.inputMapping to be JSON text, but it is not: expected value
             --> w.yaml:6:24
              |
            6 |   inputMapping: '{"a": $.input.a}'
              |                        ^
        "#]],
    );
    check_body(
        "start: {run: \"@actions/a\", inputMapping: 5, transitions: {success: flo.Completed, failure: flo.Failed}}\n",
        expect![[r#"
            error[E100]: expected start.inputMapping to be a mapping, its JSON text or a path, but it is the number 5
             --> w.yaml:4:42
              |
            4 | start: {run: "@actions/a", inputMapping: 5, transitions: {success: flo.Completed, failure: flo.Failed}}
              |                                          ^
              = hint: a path begins with `$.`
        "#]],
    );
}

#[test]
fn e100_a_repeated_key_in_json() {
    check(
        "{\"kind\": \"Workflow\", \"name\": \"w\", \"version\": \"1\", \"description\": \"\\ud83d\\ude00\",\n \"name\": \"x\"}\n",
        expect![[r#"
            error[E100]: duplicate key "name"
             --> w.yaml:2:2
              |
            2 |  "name": "x"}
              |  ^^^^^^
        "#]],
    );
    check_body(
        r#"
        start:
          run: "@actions/a"
          inputMapping: '{"a": 1, "a": 2}'
          transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E100]: expected start.inputMapping to be JSON text, but it is not: duplicate key "a"
             --> w.yaml:6:27
              |
            6 |   inputMapping: '{"a": 1, "a": 2}'
              |                           ^^^
        "#]],
    );
}

#[test]
fn texts_that_yaml_cannot_read_without_quotes_get_a_hint() {
    check_body(
        "start: {run: @actions/a}\n",
        expect![[r#"
        error[E100]: not YAML: unexpected character: `@'
         --> w.yaml:4:14
          |
        4 | start: {run: @actions/a}
          |              ^
          = hint: quote a text that begins with `@`, such as "@actions/NAME"
    "#]],
    );
    check_body(
        "start: {set: {a: $.input.items[0]}}\n",
        expect![[r#"
        error[E100]: not YAML: while parsing a flow mapping, did not find expected ',' or '}'
         --> w.yaml:4:31
          |
        4 | start: {set: {a: $.input.items[0]}}
          |                               ^
          = hint: inside `{…}` and `[…]`, quote a text that contains one of `,:?[]{}`
    "#]],
    );
}
