//! The query language for runs (W22): its meaning, and its error messages.

use expect_test::{Expect, expect};
use flotilla_dsl::query::{CONDITIONS_MAX, QUERY_BYTES_MAX, parse};
use flotilla_engine::ids::{AttributeName, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{AttributeValue, RunStatus};
use flotilla_engine::view::{Comparison, Condition, Equality};

fn conditions(text: &str) -> Vec<Condition> {
    parse(text)
        .unwrap_or_else(|invalid| panic!("{}", invalid.render(text)))
        .conditions
}

fn attribute(name: &str, comparison: Comparison, values: Vec<AttributeValue>) -> Condition {
    Condition::Attribute {
        name: AttributeName::new(name).expect("a name"),
        comparison,
        values,
    }
}

fn string(text: &str) -> AttributeValue {
    AttributeValue::String(text.to_owned())
}

fn number(text: &str) -> AttributeValue {
    AttributeValue::Number(Json::from_checked(text.to_owned()))
}

/// Compares an error's rendering.
fn check(text: &str, expected: Expect) {
    let invalid = parse(text).expect_err("a mistake");
    expected.assert_eq(&invalid.render(text));
}

#[test]
fn each_field_takes_its_values() {
    let order = WorkflowName::new("order.v2").expect("a name");
    let failed = RunStatus::ALL[4];
    assert_eq!(
        conditions("workflow = 'order.v2' and status!='failed'"),
        [
            Condition::Workflow(Equality::Equal, order),
            Condition::Status(Equality::NotEqual, failed),
        ]
    );
    assert_eq!(
        conditions("started_at >= 1000 AND completed_at<'1970-01-01T00:00:02Z'"),
        [
            Condition::StartedAt(Comparison::GreaterOrEqual, 1_000),
            Condition::CompletedAt(Comparison::Less, 2_000),
        ]
    );
    assert_eq!(
        conditions("started_at <= 1970-01-01T01:00:00.500+01:00 and completed_at > -5"),
        [
            Condition::StartedAt(Comparison::LessOrEqual, 500),
            Condition::CompletedAt(Comparison::Greater, 0),
        ]
    );
}

#[test]
fn a_value_means_all_that_an_attribute_may_be() {
    assert_eq!(
        conditions("customer-id = 'o''neill' and amount > 99.50 and count != -7"),
        [
            attribute("customer-id", Comparison::Equal, vec![string("o'neill")]),
            attribute("amount", Comparison::Greater, vec![number("99.50")]),
            attribute(
                "count",
                Comparison::NotEqual,
                vec![number("-7"), AttributeValue::Timestamp(-7)]
            ),
        ]
    );
    let time = "1970-01-01T00:00:01Z";
    assert_eq!(
        conditions(&format!("due < '{time}' and due < {time}")),
        [
            attribute(
                "due",
                Comparison::Less,
                vec![string(time), AttributeValue::Timestamp(1_000)]
            ),
            attribute(
                "due",
                Comparison::Less,
                vec![AttributeValue::Timestamp(1_000)]
            ),
        ]
    );
}

#[test]
fn nothing_is_a_query_without_conditions() {
    assert_eq!(conditions(""), []);
    assert_eq!(conditions(" \n\t "), []);
}

#[test]
fn a_condition_that_breaks_off_or_is_out_of_order_is_shown_in_its_place() {
    check(
        "amount >",
        expect![[r#"
        expected a value, but the text ends
          amount >
                  ^
    "#]],
    );
    check(
        "status = 'failed' and",
        expect![[r#"
        expected a condition after `and`, but the text ends
          status = 'failed' and
                               ^
    "#]],
    );
    check(
        "status = 'failed' or status = 'cancelled'",
        expect![[r#"
        expected `and` or the end, but found `or`
          status = 'failed' or status = 'cancelled'
                            ^^
          hint: there is no `or`: use two queries
    "#]],
    );
    check(
        "status 'failed'",
        expect![[r#"
        expected a comparison, but found the string 'failed'
          status 'failed'
                 ^^^^^^^^
          hint: the comparisons are `=`, `!=`, `<`, `<=`, `>` and `>=`
    "#]],
    );
    check(
        "'failed' = status",
        expect![[r#"
        expected a field, but found the string 'failed'
          'failed' = status
          ^^^^^^^^
          hint: the fields are workflow, status, started_at, completed_at and the names of search attributes
    "#]],
    );
}

#[test]
fn a_sign_of_another_language_is_shown_with_ours() {
    check(
        "status == 'failed'",
        expect![[r#"
        expected a comparison, but found `==`
          status == 'failed'
                 ^^
          hint: equality is a single `=`
    "#]],
    );
    check(
        "status <> 'failed'",
        expect![[r#"
        expected a comparison, but found `<>`
          status <> 'failed'
                 ^^
          hint: the opposite of `=` is `!=`
    "#]],
    );
    check(
        "status = \"failed\"",
        expect![[r#"
            expected a field, a comparison or a value, but found `"`
              status = "failed"
                       ^
              hint: put strings in single quotes: 'failed'
        "#]],
    );
    check(
        "(status = 'failed')",
        expect![[r#"
            expected a field, a comparison or a value, but found `(`
              (status = 'failed')
              ^
              hint: conditions can only be joined by `and`
        "#]],
    );
    check(
        "status = 'fai",
        expect![[r#"
        expected the string to end with a single quote, but the text ends
          status = 'fai
                   ^^^^
    "#]],
    );
    check(
        "über = 'x'",
        expect![[r#"
            expected a field, a comparison or a value, but found `ü`
              über = 'x'
              ^
        "#]],
    );
    check(
        "amount = > 5",
        expect![[r#"
        expected a value, but found `>`
          amount = > 5
                   ^
    "#]],
    );
    check(
        "amount = 5 5",
        expect![[r#"
        expected `and` or the end, but found `5`
          amount = 5 5
                     ^
    "#]],
    );
}

#[test]
fn an_unknown_status_is_shown_with_the_known_ones() {
    check(
        "status = failed",
        expect![[r#"
        expected a status in single quotes, but found `failed`
          status = failed
                   ^^^^^^
          hint: write 'failed'
    "#]],
    );
    check(
        "status = 'complete'",
        expect![[r#"
        expected a status, but 'complete' is not one
          status = 'complete'
                   ^^^^^^^^^^
          hint: did you mean 'completed'?
    "#]],
    );
    check(
        "status = 'gone'",
        expect![[r#"
        expected a status, but 'gone' is not one
          status = 'gone'
                   ^^^^^^
          hint: one of pending, running, waiting, completed, failed, cancelled, timed_out
    "#]],
    );
}

#[test]
fn a_name_is_compared_with_a_name() {
    check(
        "status > 'failed'",
        expect![[r#"
        expected `=` or `!=` for a name, but found `>`
          status > 'failed'
                 ^
    "#]],
    );
    check(
        "workflow = 7",
        expect![[r#"
        expected a workflow's name in single quotes, but found `7`
          workflow = 7
                     ^
          hint: write '7'
    "#]],
    );
    check(
        "workflow = 'a:b'",
        expect![[r#"
        expected a workflow name to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is "a:b"
          workflow = 'a:b'
                     ^^^^^
    "#]],
    );
}

#[test]
fn an_invalid_time_is_shown_with_a_valid_one() {
    check(
        "started_at > 'yesterday'",
        expect![[r#"
        expected a time, but found 'yesterday'
          started_at > 'yesterday'
                       ^^^^^^^^^^^
          hint: a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z
    "#]],
    );
    check(
        "started_at > 1.5",
        expect![[r#"
        expected a time, but found 1.5
          started_at > 1.5
                       ^^^
          hint: a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z
    "#]],
    );
    check(
        "started_at > now",
        expect![[r#"
        expected a time, but found now
          started_at > now
                       ^^^
          hint: a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z
    "#]],
    );
    check(
        "due > 2026-01-31",
        expect![[r#"
        expected a number or a time, but found 2026-01-31
          due > 2026-01-31
                ^^^^^^^^^^
          hint: a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z
    "#]],
    );
}

#[test]
fn a_value_that_no_attribute_has_is_shown_in_its_place() {
    check(
        "is_urgent = true",
        expect![[r#"
        expected a string, a number or a time, but found true
          is_urgent = true
                      ^^^^
          hint: search attributes cannot be booleans: store it as a string
    "#]],
    );
    check(
        "customer = jane",
        expect![[r#"
        expected a value, but found `jane`
          customer = jane
                     ^^^^
          hint: put strings in single quotes: 'jane'
    "#]],
    );
    check(
        "customer\n  = 'é' and amount\n  = 5x",
        expect![[r#"
        expected a number or a time, but found 5x
            = 5x
              ^^
          hint: a time is milliseconds since 1970, or RFC 3339 as in 2026-01-31T09:00:00Z
    "#]],
    );
}

#[test]
fn queries_are_bounded() {
    let many = vec!["a = 1"; CONDITIONS_MAX].join(" and ");
    assert_eq!(conditions(&many).len(), CONDITIONS_MAX);
    let more = format!("{many} and a = 1");
    let invalid = parse(&more).expect_err("one more");
    assert_eq!(
        invalid.to_string(),
        "expected at most 32 conditions, but this is one more"
    );
    let long = format!("a = '{}'", "x".repeat(QUERY_BYTES_MAX));
    let invalid = parse(&long).expect_err("too long");
    assert_eq!(
        invalid.to_string(),
        "expected at most 4096 bytes, but there are 4102"
    );
}

#[test]
fn a_mistake_shows_nothing_that_a_terminal_would_obey() {
    for text in [
        "status = '\rfailed'",
        "status = '\u{1b}[31m'",
        "started_at = '\n'",
        "a = 1 'b\u{7}'",
    ] {
        let invalid = parse(text).expect_err("a mistake");
        let message = invalid.to_string();
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}
