//! W68: inputs with types and defaults.

use crate::{accept_body, check_body};
use expect_test::expect;

const STEPS: &str = "steps: [{name: charge, run: \"@actions/charge\"}]\n";

#[test]
fn inputs_are_a_schema_with_defaults() {
    let definition = accept_body(&format!(
        r#"
inputs:
  amount: {{type: number, required: true, description: "In euros."}}
  vm: {{type: string, default: vm-1}}
  parcels: {{type: array, default: []}}
  "odd \"name\"": {{}}
  any: {{default: {{a: null}}}}
{STEPS}"#
    ));
    expect![[r#"{"type":"object","properties":{"amount":{"type":"number","description":"In euros."},"vm":{"type":"string","default":"vm-1"},"parcels":{"type":"array","default":[]},"odd \"name\"":{},"any":{"default":{"a":null}}},"required":["amount"]}"#]]
    .assert_eq(definition.input_schema.as_deref().expect("a schema"));
    assert_eq!(
        definition.input_defaults.as_deref(),
        Some(r#"{"vm":"vm-1","parcels":[],"any":{"a":null}}"#)
    );
}

#[test]
fn inputs_without_defaults_fill_nothing_in() {
    let definition = accept_body(&format!("inputs: {{n: {{type: integer}}}}\n{STEPS}"));
    assert_eq!(definition.input_defaults, None);
    let definition = accept_body(&format!("input: {{type: object}}\n{STEPS}"));
    assert_eq!(definition.input_defaults, None);
}

#[test]
fn a_default_has_the_type_of_its_input_and_is_for_an_optional_one() {
    check_body(
        &format!(
            r#"
inputs:
  amount: {{type: number, default: "100"}}
  vm: {{type: string, required: true, default: vm-1}}
  n: {{type: int}}
  m: {{type: integer, default: 1.5, requierd: true}}
  o: 1
{STEPS}"#
        ),
        expect![[r#"
            error[E100]: expected inputs.amount.default to be of type `number`, but it is the string "100"
             --> w.yaml:5:35
              |
            5 |   amount: {type: number, default: "100"}
              |                                   ^^^^^

            error[E100]: expected inputs.vm.default to be left out, since the input is required
             --> w.yaml:6:38
              |
            6 |   vm: {type: string, required: true, default: vm-1}
              |                                      ^^^^^^^

            error[E100]: expected inputs.n.type to be one of `string`, `number`, `integer`, `boolean`, `object`, `array`, but it is the string "int"
             --> w.yaml:7:13
              |
            7 |   n: {type: int}
              |             ^^^

            error[E100]: expected inputs.m.default to be of type `integer`, but it is the number 1.5
             --> w.yaml:8:31
              |
            8 |   m: {type: integer, default: 1.5, requierd: true}
              |                               ^^^

            error[E100]: unknown key "requierd" at inputs.m
             --> w.yaml:8:36
              |
            8 |   m: {type: integer, default: 1.5, requierd: true}
              |                                    ^^^^^^^^
              = hint: did you mean "required"?

            error[E100]: expected inputs.o to be a mapping, but it is the number 1
             --> w.yaml:9:6
              |
            9 |   o: 1
              |      ^
        "#]],
    );
}

#[test]
fn inputs_and_a_schema_exclude_each_other() {
    check_body(
        &format!("input: {{type: object}}\ninputs: {{n: {{type: integer}}}}\n{STEPS}"),
        expect![[r#"
            error[E100]: expected either `input` or `inputs`, but the definition has both
             --> w.yaml:5:1
              |
            5 | inputs: {n: {type: integer}}
              | ^^^^^^
              = hint: `inputs` is a short form of a schema in `input`
        "#]],
    );
}

#[test]
fn a_schedule_satisfies_the_inputs() {
    check_body(
        &format!("inputs: {{n: {{required: true}}}}\nschedule: {{interval: 1000}}\n{STEPS}"),
        expect![[r#"
            error[E100]: expected the input of scheduled runs to satisfy the workflow's `input` schema, but "n" is a required property
             --> w.yaml:5:11
              |
            5 | schedule: {interval: 1000}
              |           ^
        "#]],
    );
}

#[test]
fn a_scheduled_input_is_bounded_together_with_the_defaults() {
    // Each quotation mark has two bytes in JSON.
    let large = "\"".repeat(524_281);
    let body = format!(
        "inputs: {{n: {{default: 1}}}}\nschedule: {{interval: 1000, input: {{a: '{large}'}}}}\n{STEPS}"
    );
    let findings = flotilla_dsl::parse(&format!("{}{body}", crate::HEAD)).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].message,
        "expected the input of scheduled runs to have at most 1048576 bytes, but it has 1048577"
    );
}

#[test]
fn a_batch_is_not_an_object_of_inputs() {
    check_body(
        &format!("inputs: {{n: {{}}}}\ntrigger: {{stream: orders, batch_size: 5}}\n{STEPS}"),
        expect![[r#"
            error[E100]: expected trigger.batch_size to be 1 beside `inputs`, since the input of a batch is an array
             --> w.yaml:5:39
              |
            5 | trigger: {stream: orders, batch_size: 5}
              |                                       ^
              = hint: use `input` with a JSON Schema instead
        "#]],
    );
    check_body(
        &format!("inputs: {{n: {{}}}}\ntrigger: {{stream: orders, batch_size: 1}}\n{STEPS}"),
        expect![[""]],
    );
}

#[test]
fn a_definition_declares_a_bounded_number_of_inputs() {
    let inputs: Vec<String> = (0..257).map(|number| format!("n{number}: {{}}")).collect();
    let body = format!("inputs: {{{}}}\n{STEPS}", inputs.join(", "));
    let findings = flotilla_dsl::parse(&format!("{}{body}", crate::HEAD)).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].message,
        "expected at most 256 inputs, but this is one more"
    );
}
