//! W57: steps that execute a block for each element of an array.

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{
    ForEachStep, OnFailure, Part, Root, StepIndex, StepKind, Tolerance,
};

fn for_each(body: &str, step: u16) -> ForEachStep {
    let definition = accept_body(body);
    match &definition.step(StepIndex(step)).kind {
        StepKind::ForEach(for_each) => for_each.clone(),
        other => panic!("expected a forEach, but found {other:?}"),
    }
}

#[test]
fn a_loop_has_defaults() {
    let body = r#"
steps:
  - {name: each, forEach: {items: $.input.all, do: {run: "@actions/a"}}}
"#;
    let step = for_each(body, 0);
    assert_eq!(step.body.name.as_str(), "each-item");
    assert_eq!((step.concurrency, step.on_failure), (10, OnFailure::Settle));
    assert_eq!(
        (step.tolerate, step.collects_outputs),
        (Tolerance::Count(0), true)
    );
}

#[test]
fn a_loop_has_settings() {
    let body = r#"
steps:
  - name: each
    forEach:
      items: {cel: "input.all.filter(one, one > 1)"}
      as: one
      maxConcurrency: 1
      onFailure: cancel
      tolerate: 15%
      collect: none
      merge: {n: sum}
      do: [{name: first, set: {n: {cel: "state.n + one"}}}, {name: second, run: "@actions/a"}]
"#;
    let step = for_each(body, 0);
    assert_eq!((step.concurrency, step.on_failure), (1, OnFailure::Cancel));
    assert_eq!(
        (step.tolerate, step.collects_outputs),
        (Tolerance::Percent(15), false)
    );
    assert_eq!((step.tolerate.of(13), Tolerance::Count(3).of(1)), (1, 3));
    assert_eq!(step.merge.len(), 1);
}

#[test]
fn an_item_has_names_in_paths_and_expressions() {
    let definition = accept_body(
        r#"
steps:
  - name: rows
    forEach:
      items: $.input.rows
      as: row
      do:
        - {name: head, run: "@actions/a", inputMapping: {a: $.item, b: $.index, c: $.row.id, d: $.row_index}}
        - name: cells
          forEach:
            items: $.row.cells
            as: cell
            do:
              run: "@actions/a"
              inputMapping: {a: $.item, b: $.row, c: $.cell, e: {cel: "row.id == cell.id && index < row_index"}}
"#,
    );
    let roots: Vec<Vec<Root>> = definition
        .steps
        .iter()
        .filter_map(|step| step.run()?.call.input.as_ref())
        .map(|template| template.paths().map(|path| path.root).collect())
        .collect();
    let (rows, cells) = (StepIndex(0), StepIndex(2));
    let of_rows = [Root::Item(rows), Root::ItemIndex(rows)];
    let of_cells = [Root::Item(cells), Root::Item(rows), Root::Item(cells)];
    assert_eq!(roots[0], [of_rows, of_rows].concat());
    assert_eq!(roots[1], of_cells);
    let inner = definition.steps.last().and_then(|step| step.run());
    let inner = inner
        .and_then(|run| run.call.input.as_ref())
        .expect("a mapping");
    let expressions = inner
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Expression(_)));
    assert_eq!(expressions.count(), 1);
}

#[test]
fn an_item_is_known_only_in_the_block() {
    check_body(
        r#"
output: {item: $.item}
steps:
  - {name: before, run: "@actions/a", inputMapping: {a: $.item.id}, skipIf: "index > 0"}
  - name: each
    skipIf: "thing.id == 1"
    forEach: {items: $.thing.all, as: thing, do: {run: "@actions/a", inputMapping: {a: $.index.x}}}
"#,
        expect![[r#"
            error[E508]: invalid path "$.item": `$.item` is available only in the block of a `forEach`
             --> w.yaml:4:16
              |
            4 | output: {item: $.item}
              |                ^^^^^^

            error[E508]: invalid path "$.item.id": `$.item` is available only in the block of a `forEach`
             --> w.yaml:6:57
              |
            6 |   - {name: before, run: "@actions/a", inputMapping: {a: $.item.id}, skipIf: "index > 0"}
              |                                                         ^^^^^^^^^

            error[E513]: invalid expression at column 1 of "index > 0": there is no name "index"
             --> w.yaml:6:77
              |
            6 |   - {name: before, run: "@actions/a", inputMapping: {a: $.item.id}, skipIf: "index > 0"}
              |                                                                             ^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "thing.id == 1": there is no name "thing"
             --> w.yaml:8:13
              |
            8 |     skipIf: "thing.id == 1"
              |             ^^^^^^^^^^^^^^^

            error[E508]: invalid path "$.thing.all": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:9:22
              |
            9 |     forEach: {items: $.thing.all, as: thing, do: {run: "@actions/a", inputMapping: {a: $.index.x}}}
              |                      ^^^^^^^^^^^

            error[E508]: invalid path "$.index.x": nothing can follow `index`
             --> w.yaml:9:88
              |
            9 |     forEach: {items: $.thing.all, as: thing, do: {run: "@actions/a", inputMapping: {a: $.index.x}}}
              |                                                                                        ^^^^^^^^^
        "#]],
    );
}

#[test]
fn steps_of_an_iteration_are_seen_only_there() {
    check_body(
        r#"
output: $.steps.first.output
steps:
  - name: each
    forEach:
      items: $.input.all
      do:
        - {name: first, run: "@actions/a"}
        - name: second
          parallel: {branches: {third: {run: "@actions/a", inputMapping: {a: $.steps.first.output}}}}
        - {name: fourth, run: "@actions/a", inputMapping: {a: $.steps.third.output, b: $.steps.each.outcome}}
  - {name: last, run: "@actions/a", inputMapping: {a: $.steps.third.output, b: $.steps.each.output}}
  - {name: check, switch: [{when: "steps.fourth.outcome == 'success'", goto: last}], default: last}
"#,
        expect![[r#"
            error[E511]: invalid path "$.steps.first.output": step "first" is visible only in the block of "each"
             --> w.yaml:4:9
              |
            4 | output: $.steps.first.output
              |         ^^^^^^^^^^^^^^^^^^^^

            error[E511]: invalid path "$.steps.third.output": step "third" is visible only in the block of "each"
              --> w.yaml:14:55
               |
            14 |   - {name: last, run: "@actions/a", inputMapping: {a: $.steps.third.output, b: $.steps.each.output}}
               |                                                       ^^^^^^^^^^^^^^^^^^^^

            error[E511]: invalid expression at column 1 of "steps.fourth.outcome == 'success'": step "fourth" is visible only in the block of "each"
              --> w.yaml:15:35
               |
            15 |   - {name: check, switch: [{when: "steps.fourth.outcome == 'success'", goto: last}], default: last}
               |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_loop_is_well_formed() {
    check_body(
        r#"
steps:
  - {name: a, forEach: {}}
  - {name: b, forEach: {items: 1, do: {run: "@actions/a"}, concurrency: 0, tolerate: 10001, collect: all, onFailure: stop}}
  - {name: c, forEach: {items: 1, do: {run: "@actions/a"}, concurrency: 101, tolerate: 101%}}
  - {name: d, forEach: {items: 1, do: {run: "@actions/a"}, as: item}}
  - {name: e, forEach: {items: 1, do: {run: "@actions/a"}, as: a-b}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].forEach to have `do`, but it is missing
             --> w.yaml:5:15
              |
            5 |   - {name: a, forEach: {}}
              |               ^^^^^^^

            error[E100]: expected steps[1].forEach.concurrency to be from 1 to 100, but it is the number 0
             --> w.yaml:6:73
              |
            6 | …, forEach: {items: 1, do: {run: "@actions/a"}, concurrency: 0, tolerate: 10001, collect: all, onFailure: stop}}
              |                                                              ^

            error[E100]: expected steps[1].forEach.tolerate to be from 0 to 10000, but it is the number 10001
             --> w.yaml:6:86
              |
            6 | …tems: 1, do: {run: "@actions/a"}, concurrency: 0, tolerate: 10001, collect: all, onFailure: stop}}
              |                                                              ^^^^^

            error[E100]: expected steps[1].forEach.collect to be one of `outputs`, `none`, but it is the string "all"
             --> w.yaml:6:102
              |
            6 | …n: "@actions/a"}, concurrency: 0, tolerate: 10001, collect: all, onFailure: stop}}
              |                                                              ^^^

            error[E100]: expected steps[1].forEach.onFailure to be one of `settle`, `cancel`, but it is the string "stop"
             --> w.yaml:6:118
              |
            6 | …, concurrency: 0, tolerate: 10001, collect: all, onFailure: stop}}
              |                                                              ^^^^

            error[E100]: expected steps[2].forEach.concurrency to be from 1 to 100, but it is the number 101
             --> w.yaml:7:73
              |
            7 |   - {name: c, forEach: {items: 1, do: {run: "@actions/a"}, concurrency: 101, tolerate: 101%}}
              |                                                                         ^^^

            error[E100]: expected steps[2].forEach.tolerate to be a number of items, or a percentage such as "10%", but it is the string "101%"
             --> w.yaml:7:88
              |
            7 |   - {name: c, forEach: {items: 1, do: {run: "@actions/a"}, concurrency: 101, tolerate: 101%}}
              |                                                                                        ^^^^

            error[E100]: expected steps[3].forEach.as to be a name that is not reserved in paths or expressions, but it is "item"
             --> w.yaml:8:64
              |
            8 |   - {name: d, forEach: {items: 1, do: {run: "@actions/a"}, as: item}}
              |                                                                ^^^^

            error[E100]: expected steps[4].forEach.as to be an identifier of letters, digits and `_` that does not begin with a digit, but it is "a-b"
             --> w.yaml:9:64
              |
            9 |   - {name: e, forEach: {items: 1, do: {run: "@actions/a"}, as: a-b}}
              |                                                                ^^^
        "#]],
    );
}

#[test]
fn a_nested_loop_has_a_name() {
    check_body(
        r#"
steps:
  - name: f
    forEach: {items: 1, as: one, do: {forEach: {items: 1, do: {run: "@actions/a"}}}}
  - name: g
    forEach: {items: 1, as: one, do: {forEach: {items: 1, as: one_index, do: {run: "@actions/a"}}}}
  - name: h
    forEach: {items: 1, concurrency: 100, do: {forEach: {items: 1, as: two, do: {run: "@actions/a"}}}}
"#,
        expect![[r#"
            error[E100]: expected steps[0].forEach.do.forEach to have `as`, since it is inside another `forEach`
             --> w.yaml:6:39
              |
            6 |     forEach: {items: 1, as: one, do: {forEach: {items: 1, do: {run: "@actions/a"}}}}
              |                                       ^^^^^^^
              = hint: the name distinguishes its items from those of the outer one

            error[E100]: expected steps[1].forEach.do.forEach.as to be a name that differs from the items and indexes of the enclosing `forEach`, but it is "one_index"
             --> w.yaml:8:63
              |
            8 |     forEach: {items: 1, as: one, do: {forEach: {items: 1, as: one_index, do: {run: "@actions/a"}}}}
              |                                                               ^^^^^^^^^

            error[E520]: expected at most 1000 active steps at the same time, but this step and its blocks can have 1101
             --> w.yaml:9:11
              |
            9 |   - name: h
              |           ^
        "#]],
    );
}

#[test]
fn a_lost_update_is_a_warning() {
    check_body(
        r#"
steps:
  - name: path
    forEach: {items: 1, do: {name: p, run: "@actions/a", set: {n: $.state.n}}}
  - name: expression
    forEach: {items: 1, do: {name: q, run: "@actions/a", set: {n: {cel: "state.nn + state['n']"}}}}
  - name: merged
    forEach: {items: 1, merge: {n: sum}, do: {name: r, run: "@actions/a", set: {n: $.state.n, m: $.state.n}}}
  - name: alone
    forEach: {items: 1, concurrency: 1, do: {name: s, run: "@actions/a", set: {n: $.state.n}}}
"#,
        expect![[r#"
            warning[E522]: concurrent iterations of "path" overwrite each other's updates of "n"
             --> w.yaml:6:58
              |
            6 |     forEach: {items: 1, do: {name: p, run: "@actions/a", set: {n: $.state.n}}}
              |                                                          ^^^
              = hint: add `merge` for the key, or use `concurrency: 1`

            warning[E522]: concurrent iterations of "expression" overwrite each other's updates of "n"
             --> w.yaml:8:58
              |
            8 |     forEach: {items: 1, do: {name: q, run: "@actions/a", set: {n: {cel: "state.nn + state['n']"}}}}
              |                                                          ^^^
              = hint: add `merge` for the key, or use `concurrency: 1`
        "#]],
    );
}

#[test]
fn a_reserved_name_in_as_is_refused() {
    let of_paths = "input state steps flo item index error attempt result output cancel meta";
    let of_cel = "true false null in as break const continue else for function if import let loop \
                  package namespace return var void while";
    for name in of_paths.split(' ').chain(of_cel.split_whitespace()) {
        let text = format!(
            "kind: Workflow\nname: w\nversion: \"1\"\nsteps: [{{name: a, forEach: {{items: 1, as: \"{name}\", do: {{run: \"@actions/a\"}}}}}}]\n"
        );
        let refused = flotilla_dsl::parse(&text).findings;
        let mut messages = refused.iter().map(|finding| &finding.message);
        assert!(
            messages.any(|message| message.contains("not reserved")),
            "{name}"
        );
    }
}
