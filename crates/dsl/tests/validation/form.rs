//! The form of findings: order, machine form, JSON documents, positions.

use crate::{HEAD, START, accept, check_body};
use expect_test::expect;
use flotilla_dsl::{Code, Severity, parse};

#[test]
fn errors_come_first_each_kind_in_document_order() {
    let text = format!(
        "{HEAD}start:\n  waitForSignal: {{type: t}}\n  transitions: {{failure: nowhere}}\nsteps:\n  a: {{run: x, transitions: {{success: gone}}}}\n"
    );
    let found: Vec<(Severity, u32)> = parse(&text)
        .findings
        .iter()
        .map(|finding| (finding.severity(), finding.span.line))
        .collect();
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(found, sorted);
    assert_eq!(
        found
            .iter()
            .filter(|(severity, _)| *severity == Severity::Error)
            .count(),
        3
    );
    assert!(found.len() > 5);
}

#[test]
fn a_finding_has_one_machine_form() {
    let parsed = parse(&format!("{HEAD}{START}nmae: x\n"));
    let json = serde_json::to_string_pretty(&parsed.findings).expect("findings are plain data");
    expect![[r#"
        [
          {
            "code": "E100",
            "severity": "error",
            "message": "unknown key \"nmae\" at the top level",
            "line": 5,
            "column": 1,
            "hint": "did you mean \"name\"?"
          }
        ]"#]]
    .assert_eq(&json);
}

#[test]
fn every_code_of_the_table_has_its_severity() {
    let warnings: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| code.severity() == Severity::Warning)
        .map(|code| code.as_str())
        .collect();
    assert_eq!(
        warnings,
        [
            "E301", "E302", "E303", "E403", "E502", "E503", "E507", "E509", "E512", "E521", "E522",
            "E523", "E524", "E525"
        ]
    );
    assert_eq!(Code::ALL.len(), 44);
}

#[test]
fn json_and_yaml_mean_the_same() {
    let yaml = accept(&format!("{HEAD}description: \"\\U0001F600 ok\"\n{START}"));
    let json = accept(
        "{\n\t\"kind\": \"Workflow\", \"name\": \"w\", \"version\": \"1\",\n\t\"description\": \"\\ud83d\\ude00 ok\",\n\t\"start\": {\"run\": \"@actions/a\", \"transitions\": {\"success\": \"flo.Completed\", \"failure\": \"flo.Failed\"}}\n}\n",
    );
    assert_eq!(yaml, json);
}

#[test]
fn a_finding_in_json_text_points_into_it() {
    check_body(
        r#"
        start:
          run: "@actions/a"
          inputMapping: '{"a": "$.inptu.a"}'
          transitions: {success: b, failure: flo.Failed}
        steps:
          b:
            run: "@actions/a"
            inputMapping: |
              {"a": "$.inptu.a"}
            transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E508]: invalid path "$.inptu.a": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:6:24
              |
            6 |   inputMapping: '{"a": "$.inptu.a"}'
              |                        ^^^^^^^^^^^
              = hint: did you mean "input"?

            error[E508]: invalid path "$.inptu.a": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
              --> w.yaml:12:7
               |
            12 |       {"a": "$.inptu.a"}
               |       ^
               = hint: did you mean "input"?
        "#]],
    );
}

#[test]
fn an_alias_is_blamed_where_it_is_used_and_its_content_where_it_stands() {
    check_body(
        r#"
        start: {run: "@actions/a", retry: &r {max_attempts: 0}, transitions: &t {success: b, failure: flo.Failed}}
        steps:
          b: {run: "@actions/a", poll: *r, transitions: *t}
        "#,
        expect![[r#"
            error[E401]: expected start.retry.max_attempts to be from 1 to 1000, but it is the number 0
             --> w.yaml:4:53
              |
            4 | start: {run: "@actions/a", retry: &r {max_attempts: 0}, transitions: &t {success: b, failure: flo.Failed}}
              |                                                     ^

            error[E401]: expected steps.b.poll.max_attempts to be from 1 to 1000, but it is the number 0
             --> w.yaml:4:53
              |
            4 | start: {run: "@actions/a", retry: &r {max_attempts: 0}, transitions: &t {success: b, failure: flo.Failed}}
              |                                                     ^

            warning[E502]: outcome `timeout` of step "b" has no transition: the run fails there
             --> w.yaml:6:3
              |
            6 |   b: {run: "@actions/a", poll: *r, transitions: *t}
              |   ^
              = hint: add a transition for `timeout`
        "#]],
    );
}
