//! W67: the outputs of steps and runs.

use crate::{accept_body, check_body};
use expect_test::expect;

#[test]
fn a_step_extracts_and_checks_its_output() {
    let definition = accept_body(
        r#"
steps:
  - name: charge
    run: "@actions/charge"
    output: {extract: {id: $.result.body.id, total: {cel: "result.body.total * 2"}}, schema: {type: object, required: [id]}}
  - name: ship
    run: "@actions/ship"
    output: {extract: $.result.body}
  - name: ask
    run: "@workflow/ask"
    output: {schema: '{"type": "string"}'}
  - {name: plain, run: "@actions/plain"}
"#,
    );
    let outputs: Vec<_> = definition.steps.iter().map(|step| step.output()).collect();
    let [Some(charge), Some(ship), Some(ask), None] = outputs[..] else {
        panic!("expected three outputs");
    };
    let extract = charge.extract.as_ref().expect("a mapping");
    assert_eq!(
        (extract.paths().count(), extract.expressions().count()),
        (1, 1)
    );
    assert_eq!(
        charge.schema.as_deref(),
        Some(r#"{"type":"object","required":["id"]}"#)
    );
    assert!(ship.extract.is_some() && ship.schema.is_none());
    assert_eq!(ask.schema.as_deref(), Some(r#"{"type":"string"}"#));
}

#[test]
fn an_output_says_something_and_only_run_steps_have_one() {
    check_body(
        r#"
steps:
  - {name: none, run: "@actions/charge", output: {}}
  - {name: path, run: "@actions/charge", output: $.result}
  - {name: bad, run: "@actions/charge", output: {extract: 1, schema: {type: 7}, check: true}}
  - {name: ask, waitForSignal: {type: go, timeoutMs: 1}, output: {extract: $.result}}
  - {name: other, run: "@actions/charge", inputMapping: {a: $.result}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].output to have `extract` or `schema`
             --> w.yaml:5:50
              |
            5 |   - {name: none, run: "@actions/charge", output: {}}
              |                                                  ^

            error[E100]: expected steps[1].output to be a mapping, but it is the string "$.result"
             --> w.yaml:6:50
              |
            6 |   - {name: path, run: "@actions/charge", output: $.result}
              |                                                  ^^^^^^^^

            error[E100]: expected steps[2].output.extract to be a mapping, its JSON text or a path, but it is the number 1
             --> w.yaml:7:59
              |
            7 |   - {name: bad, run: "@actions/charge", output: {extract: 1, schema: {type: 7}, check: true}}
              |                                                           ^
              = hint: a path begins with `$.`

            error[E100]: expected steps[2].output.schema to be a JSON Schema, but it is not valid under any of the schemas listed in the 'anyOf' keyword
             --> w.yaml:7:77
              |
            7 |   - {name: bad, run: "@actions/charge", output: {extract: 1, schema: {type: 7}, check: true}}
              |                                                                             ^
              = hint: JSON Schema 2020-12, without references to other documents

            error[E100]: unknown key "check" at steps[2].output
             --> w.yaml:7:81
              |
            7 |   - {name: bad, run: "@actions/charge", output: {extract: 1, schema: {type: 7}, check: true}}
              |                                                                                 ^^^^^
              = hint: the known keys here are extract, schema

            error[E100]: expected steps[3] to have no `output`, since it waits for a signal
             --> w.yaml:8:58
              |
            8 |   - {name: ask, waitForSignal: {type: go, timeoutMs: 1}, output: {extract: $.result}}
              |                                                          ^^^^^^

            error[E508]: invalid path "$.result": `$.result` is available only in `set`, and in `output` of a step or `output.extract` of the workflow
             --> w.yaml:9:61
              |
            9 |   - {name: other, run: "@actions/charge", inputMapping: {a: $.result}}
              |                                                             ^^^^^^^^
        "#]],
    );
}

#[test]
fn a_run_extracts_and_checks_its_output() {
    let steps = r#"steps: [{name: charge, run: "@actions/charge"}]"#;
    let outputs = [
        (
            "{extract: {id: $.result.id}, schema: {type: object}}",
            (true, true),
        ),
        ("{extract: $.steps.charge.output}", (true, false)),
        ("{schema: {type: object}}", (false, true)),
        // With another key, it is a mapping of an object.
        (
            "{extract: $.steps.charge.output, schema: 1, other: 2}",
            (true, false),
        ),
        ("{}", (true, false)),
    ];
    for (output, expected) in outputs {
        let definition = accept_body(&format!("\noutput: {output}\n{steps}\n"));
        let rules = definition.output.expect("an output");
        let found = (rules.extract.is_some(), rules.schema.is_some());
        assert_eq!(found, expected, "{output}");
    }
    check_body(
        r#"
output: {schema: {type: thing}}
steps: [{name: charge, run: "@actions/charge"}]
"#,
        expect![[r#"
            error[E100]: expected output.schema to be a JSON Schema, but it is not valid under any of the schemas listed in the 'anyOf' keyword
             --> w.yaml:4:25
              |
            4 | output: {schema: {type: thing}}
              |                         ^^^^^
              = hint: JSON Schema 2020-12, without references to other documents
        "#]],
    );
    check_body(
        r#"
output: {total: $.result.total}
steps: [{name: charge, run: "@actions/charge"}]
"#,
        expect![[r#"
            error[E508]: invalid path "$.result.total": `$.result` is available only in `set`, and in `output` of a step or `output.extract` of the workflow
             --> w.yaml:4:17
              |
            4 | output: {total: $.result.total}
              |                 ^^^^^^^^^^^^^^
        "#]],
    );
}
