//! Concurrency limits (W84).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{Expression, OnLimit, Part, Path, Root, Segment};

const STEPS: &str = "steps:\n  - {name: a, run: \"@actions/a\"}\n";

#[test]
fn a_workflow_limits_how_many_runs_are_under_way() {
    let limits = |text: &str| accept_body(&format!("{text}{STEPS}")).concurrency;
    assert_eq!(limits(""), []);
    let one = limits("concurrency: {key: \"$.input.vm\"}\n");
    let [limit] = &one[..] else {
        panic!("expected one limit, but there are {}", one.len());
    };
    let path = Path {
        root: Root::Input,
        segments: vec![Segment::Field("vm".to_owned())],
    };
    assert_eq!(limit.key.parts, [Part::Path(path)]);
    assert_eq!((limit.limit, limit.on_limit), (1, OnLimit::Queue));
    assert_eq!(limit.name, None);
    let two = limits(
        "concurrency:\n  - {key: all, limit: 10, name: fleet, onLimit: cancel_oldest}\n  \
         - {key: {cel: \"input.vm + flo.workflow\"}, onLimit: existing}\n",
    );
    let name = two[0].name.as_ref().map(|name| name.as_str());
    assert_eq!(name, Some("fleet"));
    let settings = two.iter().map(|limit| (limit.limit, limit.on_limit));
    let expected = [(10, OnLimit::CancelOldest), (1, OnLimit::Existing)];
    assert_eq!(settings.collect::<Vec<_>>(), expected);
    let texts: Vec<&str> = two[1].key.expressions().map(text).collect();
    assert_eq!(texts, ["input.vm + flo.workflow"]);
}

fn text(expression: &Expression) -> &str {
    &expression.text
}

#[test]
fn concurrency_limits_are_checked() {
    check_body(
        &format!(
            "concurrency:\n  - {{key: \"$.state.vm\", limit: 0, onLimit: drop}}\n  \
             - {{key: {{cel: \"steps.a.output\"}}, name: \"two words\"}}\n  - {{limit: 2}}\n{STEPS}"
        ),
        expect![[r#"
            error[E508]: invalid path "$.state.vm": expected it to begin with `$.input`, `$.meta` or `$.flo` here
             --> w.yaml:5:11
              |
            5 |   - {key: "$.state.vm", limit: 0, onLimit: drop}
              |           ^^^^^^^^^^^^

            error[E100]: expected concurrency[0].limit to be from 1 to 10000, but it is the number 0
             --> w.yaml:5:32
              |
            5 |   - {key: "$.state.vm", limit: 0, onLimit: drop}
              |                                ^

            error[E100]: expected concurrency[0].onLimit to be one of `queue`, `reject`, `existing`, `cancel_oldest`, but it is the string "drop"
             --> w.yaml:5:44
              |
            5 |   - {key: "$.state.vm", limit: 0, onLimit: drop}
              |                                            ^^^^

            error[E513]: invalid expression at column 1 of "steps.a.output": there is no name "steps"
             --> w.yaml:6:17
              |
            6 |   - {key: {cel: "steps.a.output"}, name: "two words"}
              |                 ^^^^^^^^^^^^^^^^

            error[E100]: expected the name of a concurrency limit to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is "two words"
             --> w.yaml:6:42
              |
            6 |   - {key: {cel: "steps.a.output"}, name: "two words"}
              |                                          ^^^^^^^^^^^

            error[E100]: expected concurrency[2] to have `key`, but it is missing
             --> w.yaml:7:5
              |
            7 |   - {limit: 2}
              |     ^
        "#]],
    );
    let five = "concurrency: [{key: a}, {key: b}, {key: c}, {key: d}, {key: e}]\n";
    check_body(
        &format!("{five}{STEPS}"),
        expect![[r#"
        error[E100]: expected at most 4 items in concurrency, but it has 5
         --> w.yaml:4:14
          |
        4 | concurrency: [{key: a}, {key: b}, {key: c}, {key: d}, {key: e}]
          |              ^
    "#]],
    );
}
