//! Literals that look like paths or expressions (E525).

use crate::check_body;
use expect_test::expect;

const STEPS: &str = "steps:\n  - {name: a, run: \"@actions/a\"}\n";

#[test]
fn e525_a_key_or_target_without_its_prefix() {
    check_body(
        &format!("concurrency: {{key: input.customer}}\ntarget: $meta.vm\n{STEPS}"),
        expect![[r#"
            warning[E525]: concurrency.key is the literal "input.customer", which is the same for each run
             --> w.yaml:4:20
              |
            4 | concurrency: {key: input.customer}
              |                    ^^^^^^^^^^^^^^
              = hint: a path begins with `$.`: $.input.customer

            warning[E525]: "$meta.vm" is a literal
             --> w.yaml:5:9
              |
            5 | target: $meta.vm
              |         ^^^^^^^^
              = hint: a path begins with `$.`: $.meta.vm
        "#]],
    );
    // A literal without a root is meant as one.
    check_body(
        &format!("concurrency: {{key: nightly.batch}}\ntarget: input\n{STEPS}"),
        expect![[""]],
    );
}

#[test]
fn e525_the_templates_of_other_languages() {
    check_body(
        r#"
            steps:
              - name: a
                run: "@actions/a"
                inputMapping: {a: $input.id, b: "${input.id}", c: ["{{ input.id }}"], d: $5, e: "{{name}}", f: input.csv, g: "${HOME}"}
              - name: each
                forEach: {items: input.list, do: {run: "@actions/b", inputMapping: {id: $item.id}}}
        "#,
        expect![[r#"
            warning[E525]: "$input.id" is a literal
             --> w.yaml:7:23
              |
            7 |     inputMapping: {a: $input.id, b: "${input.id}", c: ["{{ input.id }}"], d: $5, e: "{{name}}", f: input.csv, g: "${HOME…
              |                       ^^^^^^^^^
              = hint: a path begins with `$.`: $.input.id

            warning[E525]: "${input.id}" is a literal
             --> w.yaml:7:37
              |
            7 |     inputMapping: {a: $input.id, b: "${input.id}", c: ["{{ input.id }}"], d: $5, e: "{{name}}", f: input.csv, g: "${HOME…
              |                                     ^^^^^^^^^^^^^
              = hint: a path begins with `$.`: $.input.id

            warning[E525]: "{{ input.id }}" is a literal
             --> w.yaml:7:56
              |
            7 |     inputMapping: {a: $input.id, b: "${input.id}", c: ["{{ input.id }}"], d: $5, e: "{{name}}", f: input.csv, g: "${HOME…
              |                                                        ^^^^^^^^^^^^^^^^
              = hint: a path begins with `$.`: $.input.id

            warning[E525]: steps[1].forEach.items is the literal "input.list", which is the same for each run
             --> w.yaml:9:22
              |
            9 |     forEach: {items: input.list, do: {run: "@actions/b", inputMapping: {id: $item.id}}}
              |                      ^^^^^^^^^^
              = hint: a path begins with `$.`: $.input.list

            warning[E525]: "$item.id" is a literal
             --> w.yaml:9:77
              |
            9 |     forEach: {items: input.list, do: {run: "@actions/b", inputMapping: {id: $item.id}}}
              |                                                                             ^^^^^^^^
              = hint: a path begins with `$.`: $.item.id
        "#]],
    );
}

#[test]
fn e525_an_expression_beside_other_keys() {
    check_body(
        r#"
            steps:
              - name: a
                run: "@actions/a"
                inputMapping: {total: {cel: "input.a + input.b", currency: EUR}, one: {cel: "1"}}
        "#,
        expect![[r#"
            warning[E525]: `cel` beside other keys is a literal, not an expression
             --> w.yaml:7:28
              |
            7 |     inputMapping: {total: {cel: "input.a + input.b", currency: EUR}, one: {cel: "1"}}
              |                            ^^^
              = hint: an expression is an object whose only key is `cel`
        "#]],
    );
}

#[test]
fn e525_a_path_within_a_text() {
    check_body(
        r#"
            steps:
              - name: a
                run: "@actions/a"
                inputMapping: {a: "order $.input.id", b: "costs $.50", c: "$.input.id"}
        "#,
        expect![[r#"
            warning[E525]: "order $.input.id" is a literal
             --> w.yaml:7:23
              |
            7 |     inputMapping: {a: "order $.input.id", b: "costs $.50", c: "$.input.id"}
              |                       ^^^^^^^^^^^^^^^^^^
              = hint: a path is the whole string: join texts with `{cel: …}`, in which $.input.id is written without `$.`
        "#]],
    );
}
