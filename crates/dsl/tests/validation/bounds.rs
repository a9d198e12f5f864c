//! W1: the limits on untrusted text.

use crate::{HEAD, START, accept_block, check};
use expect_test::{Expect, expect};
use flotilla_dsl::{FINDINGS_MAX, parse, render};
use std::fmt::Write;

/// The first finding of a rejected text, without its source line.
fn check_first(text: &str, expected: Expect) {
    let parsed = parse(text);
    assert!(parsed.definition.is_none());
    let shown = render(&parsed.findings[..1], "", "w.yaml");
    expected.assert_eq(&shown.lines().take(2).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_definition_of_two_mebibytes_is_refused() {
    check_first(
        &format!("{HEAD}description: {}\n{START}", "x".repeat(2 << 20)),
        expect![[r#"
            error[E100]: expected the definition to be at most 1048576 bytes, but it is 2097289
             --> w.yaml:1:1"#]],
    );
}

#[test]
fn a_definition_of_just_one_mebibyte_is_read() {
    let text = format!("{HEAD}{START}description: ");
    let filler = "x".repeat((1 << 20) - text.len());
    assert!(parse(&format!("{text}{filler}")).definition.is_some());
    assert!(parse(&format!("{text}{filler}x")).definition.is_none());
}

#[test]
fn a_yaml_bomb_is_refused_where_it_goes_off() {
    let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{before}]").expect("writing to a string cannot fail");
    }
    check_first(
        &bomb,
        expect![[r#"
        error[E100]: expected aliases to expand to at most 1048576 bytes, but here they exceed that
         --> w.yaml:5:25"#]],
    );
}

#[test]
fn anchors_within_the_bound_are_allowed() {
    let definition =
        accept_block("terminals:\n  A: &a {status: failed, output: {x: 1}}\n  B: *a\n  C: *a\n");
    assert_eq!(
        definition.terminals[2].output,
        definition.terminals[0].output
    );
}

#[test]
fn an_alias_within_its_own_anchor_is_refused() {
    check_first(
        "a: &a [1, *a]\n",
        expect![[r#"
        error[E100]: expected an alias to a finished value, but it is inside that value
         --> w.yaml:1:11"#]],
    );
}

#[test]
fn an_alias_to_nothing_is_refused() {
    check_first(
        "a: *b\n",
        expect![[r#"
        error[E100]: not YAML: while parsing node, found unknown anchor
         --> w.yaml:1:4"#]],
    );
}

#[test]
fn nesting_past_64_levels_is_refused() {
    let nested = |levels: usize| format!("a: {}1{}\n", "[".repeat(levels), "]".repeat(levels));
    check_first(
        &nested(64),
        expect![[r#"
        error[E100]: expected at most 64 levels of nesting, but this one is deeper
         --> w.yaml:1:67"#]],
    );
    check_first(
        &nested(5_000),
        expect![[r#"
        error[E100]: expected at most 64 levels of nesting, but this one is deeper
         --> w.yaml:1:259"#]],
    );
    check_first(
        &"[".repeat(1 << 20),
        expect![[r#"
        error[E100]: expected at most 64 levels of nesting, but this one is deeper
         --> w.yaml:1:256"#]],
    );
    check_first(
        &"- ".repeat(300),
        expect![[r#"
        error[E100]: expected at most 64 levels of nesting, but this one is deeper
         --> w.yaml:1:129"#]],
    );
    let within = parse(&nested(63));
    assert!(
        within
            .findings
            .iter()
            .all(|finding| !finding.message.contains("levels"))
    );
}

#[test]
fn nesting_by_aliases_is_counted_too() {
    let mut text = format!("a0: &a0 {}1{}\n", "[".repeat(40), "]".repeat(40));
    text.push_str(&format!("b: {}*a0{}\n", "[".repeat(40), "]".repeat(40)));
    check_first(
        &text,
        expect![[r#"
        error[E100]: expected at most 64 levels of nesting, but this one is deeper
         --> w.yaml:2:44"#]],
    );
}

#[test]
fn a_second_document_is_refused() {
    check_first(
        &format!("{HEAD}{START}---\nkind: Workflow\n"),
        expect![[r#"
            error[E100]: expected one document, but a second one begins here
             --> w.yaml:5:1"#]],
    );
}

#[test]
fn tags_are_refused() {
    check(
        &format!("kind: Workflow\nname: !!str w\nversion: !semver \"1\"\n{START}"),
        expect![[r#"
            error[E100]: expected a value without a YAML tag, but it has one
             --> w.yaml:2:7
              |
            2 | name: !!str w
              |       ^^^^^^^
              = hint: remove the tag; quote a value to make it a string

            error[E100]: expected a value without a YAML tag, but it has one
             --> w.yaml:3:10
              |
            3 | version: !semver "1"
              |          ^^^^^^^^^^^
              = hint: remove the tag; quote a value to make it a string
        "#]],
    );
}

#[test]
fn control_characters_are_refused() {
    check_first(
        "kind: Workflow\nname: a\u{0}b\n",
        expect![[r#"
        error[E100]: expected text, but found the control character U+0000
         --> w.yaml:2:8"#]],
    );
}

#[test]
fn numbers_that_json_lacks_are_refused() {
    check(
        &format!("{HEAD}schedule: {{interval: .inf}}\n{START}"),
        expect![[r#"
            error[E100]: expected schedule.interval to be a whole number, but it is empty
             --> w.yaml:4:12
              |
            4 | schedule: {interval: .inf}
              |            ^^^^^^^^

            error[E100]: expected a number that JSON can write, but it is ".inf"
             --> w.yaml:4:22
              |
            4 | schedule: {interval: .inf}
              |                      ^^^^
              = hint: quote it to make it a string
        "#]],
    );
}

#[test]
fn a_key_that_is_a_list_is_refused() {
    check_first(
        "? [a, b]\n: c\n",
        expect![[r#"
        error[E100]: expected a key, but here is a mapping or list
         --> w.yaml:1:3"#]],
    );
}

#[test]
fn a_definition_of_4097_steps_is_refused() {
    let definition = |count: usize| {
        let mut text = format!(
            "{HEAD}start: {{run: \"@actions/a\", transitions: {{success: s0, failure: flo.Failed}}}}\nsteps:\n"
        );
        for step in 0..count {
            let next = if step + 1 < count {
                format!("s{}", step + 1)
            } else {
                "flo.Completed".to_owned()
            };
            writeln!(text, "  s{step}: {{run: \"@actions/a\", transitions: {{success: {next}, failure: flo.Failed}}}}")
                .expect("writing to a string cannot fail");
        }
        text
    };
    let accepted = parse(&definition(4_095));
    assert_eq!(accepted.findings, []);
    assert_eq!(
        accepted.definition.map(|definition| definition.steps.len()),
        Some(4_096)
    );
    check_first(
        &definition(4_096),
        expect![[r#"
        error[E100]: expected at most 4096 steps or terminals, but this is one more
            --> w.yaml:4101:3"#]],
    );
}

#[test]
fn plans_and_the_events_that_invalidate_them_are_bounded_in_number() {
    let plans = |count: usize| {
        let plan =
            |number| format!("  p{number}: {{executors: [{{name: a, action: \"@actions/a\"}}]}}\n");
        format!("plans:\n{}", (0..count).map(plan).collect::<String>())
    };
    check_first(
        &format!("{HEAD}{}{START}", plans(65)),
        expect![[r#"
        error[E100]: expected at most 64 plans, but this is one more
          --> w.yaml:69:3"#]],
    );
    let events = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("e{number}")).collect();
        format!(
            "plans:\n  p:\n    executors: [{{name: a, action: \"@actions/a\"}}]\n    cache: {{key: k, invalidate_on: [{}]}}\n",
            names.join(", ")
        )
    };
    check_first(
        &format!("{HEAD}{}{START}", events(33)),
        expect![[r#"
        error[E100]: expected at most 32 items in plans.p.cache.invalidate_on, but it has 33
         --> w.yaml:7:36"#]],
    );
}

#[test]
fn findings_are_bounded_and_errors_come_before_the_cut() {
    let mut text = HEAD.to_owned();
    for key in 0..50_000 {
        writeln!(text, "k{key}: 1").expect("writing to a string cannot fail");
    }
    let parsed = parse(&text);
    assert_eq!(parsed.findings.len(), FINDINGS_MAX);
    assert!(parsed.definition.is_none());
    assert!(render(&parsed.findings, &text, "w.yaml").len() < 250_000);
}

#[test]
fn search_attributes_and_the_paths_of_a_mapping_are_bounded_in_number() {
    let attributes = |count: usize| {
        let items = (0..count).map(|number| format!("  - {{name: a{number}, from: input.x}}\n"));
        format!("searchAttributes:\n{}", items.collect::<String>())
    };
    let _ = accept_block(&attributes(64));
    check_first(
        &format!("{HEAD}{}{START}", attributes(65)),
        expect![[r#"
            error[E100]: expected at most 64 items in searchAttributes, but it has 65
             --> w.yaml:5:3"#]],
    );
    let mapping = |count: usize| {
        let items = (0..count).map(|number| format!("f{number}: $.input.x"));
        format!("output: {{{}}}\n", items.collect::<Vec<_>>().join(", "))
    };
    let _ = accept_block(&mapping(256));
    check_first(
        &format!("{HEAD}{}{START}", mapping(257)),
        expect![[r#"
            error[E100]: expected at most 256 paths in output, but it has 257
             --> w.yaml:4:9"#]],
    );
}
