//! W50, W51, W55, W56: blocks and branches (E105, E201, E510, E515, E520).

use crate::{HEAD, accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{
    BlockForm, BlockIndex, Definition, EndIndex, Join, OnFailure, StepIndex, StepKind, Target,
};
use std::fmt::Write;

const NESTED: &str = r#"
start:
  parallel:
    branches:
      mail: {run: "@actions/mail"}
      stock:
        - {name: reserve, run: "@actions/reserve"}
        - name: pick
          parallel:
            branches:
              left: {name: first, run: "@actions/left"}
              right:
                output: {n: $.steps.right.output.n}
                steps: [{name: only, run: "@actions/right"}]
      invoice:
        start: {run: "@actions/render", transitions: {success: send, failure: flo.End.unpaid}}
        steps:
          send: {run: "@actions/send", transitions: {success: flo.Completed, failure: flo.Failed}}
  transitions: {success: again, failure: flo.Failed}
steps:
  again: {run: "@actions/again", transitions: {success: start, failure: flo.Failed}}
"#;

/// The names of the steps of a block.
fn steps(definition: &Definition, block: u16) -> Vec<&str> {
    let steps = definition.steps.iter();
    let own = steps.filter(|step| step.block == BlockIndex(block));
    own.map(|step| step.name.as_str()).collect()
}

#[test]
fn blocks_nest_and_share_one_set_of_names() {
    let definition =
        accept_body(&NESTED.replace("$.steps.right.output.n", "$.steps.only.output.n"));
    let shown: Vec<_> = (0..)
        .zip(&definition.blocks)
        .map(|(position, block)| (block.form, block.opener, steps(&definition, position)))
        .collect();
    let (start, pick) = (Some(StepIndex(0)), Some(StepIndex(4)));
    assert_eq!(
        shown,
        [
            (BlockForm::Graph, None, vec!["start", "again"]),
            (BlockForm::Single, start, vec!["mail"]),
            (BlockForm::List, start, vec!["reserve", "pick"]),
            (BlockForm::Graph, start, vec!["invoice", "send"]),
            (BlockForm::Single, pick, vec!["first"]),
            (BlockForm::List, pick, vec!["only"]),
        ]
    );
    assert!(definition.blocks[5].output.is_some());
    let StepKind::Parallel(parallel) = &definition.step(StepIndex(0)).kind else {
        panic!("the start step has branches");
    };
    let branches = parallel.branches.iter();
    let branches: Vec<_> = branches
        .map(|branch| (branch.name.as_str(), branch.block))
        .collect();
    let [mail, stock, invoice] = [1, 2, 3].map(BlockIndex);
    assert_eq!(
        branches,
        [("mail", mail), ("stock", stock), ("invoice", invoice)]
    );
    let invoice = definition
        .steps
        .iter()
        .find(|step| step.name.as_str() == "invoice");
    let targets = invoice.expect("a step").transitions.iter();
    let targets: Vec<Target> = targets.map(|line| line.target).collect();
    assert_eq!(targets[1], Target::End(EndIndex(0)));
    assert_eq!(definition.ends[0].as_str(), "unpaid");
}

#[test]
fn only_steps_behind_a_way_back_may_repeat() {
    let definition =
        accept_body(&NESTED.replace("$.steps.right.output.n", "$.steps.only.output.n"));
    let repeated = definition.steps.iter().filter(|step| step.may_repeat);
    let repeated: Vec<&str> = repeated.map(|step| step.name.as_str()).collect();
    assert_eq!(repeated, ["start", "again"]);
}

#[test]
fn a_step_has_one_kind() {
    check_body(
        r#"
        start:
          run: "@actions/a"
          parallel: {branches: {b: {run: "@actions/b"}}}
          transitions: {success: two, failure: flo.Failed}
        steps:
          two:
            parallel: {branches: {c: {run: "@actions/b"}}}
            retry: {max_attempts: 2}
            transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E100]: expected start to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has `run` and `parallel`
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^

            error[E100]: expected steps.two to have no `retry`, since it has branches
              --> w.yaml:11:5
               |
            11 |     retry: {max_attempts: 2}
               |     ^^^^^
        "#]],
    );
}

#[test]
fn e105_branches_and_steps_share_their_names() {
    check_body(
        r#"
        steps:
          - name: fan
            parallel:
              branches:
                fan: {run: "@actions/a"}
                one: {run: "@actions/a"}
                two: [{name: one, run: "@actions/b"}, {name: three, run: "@actions/c"}]
                three: {run: "@actions/d"}
        "#,
        expect![[r#"
            error[E105]: duplicate step "fan"
             --> w.yaml:8:9
              |
            8 |         fan: {run: "@actions/a"}
              |         ^^^
              = hint: the first one is at line 5

            error[E105]: duplicate step "one"
              --> w.yaml:10:22
               |
            10 |         two: [{name: one, run: "@actions/b"}, {name: three, run: "@actions/c"}]
               |                      ^^^
               = hint: the first one is at line 9

            error[E105]: duplicate step "three"
              --> w.yaml:10:54
               |
            10 |         two: [{name: one, run: "@actions/b"}, {name: three, run: "@actions/c"}]
               |                                                      ^^^^^
               = hint: a branch at line 11 has this name: branches and steps share one set of names
        "#]],
    );
}

#[test]
fn e510_a_nested_block_that_is_none() {
    check_body(
        r#"
        steps:
          - name: fan
            parallel:
              branches:
                a: 7
                b: []
                c: {steps: {d: {run: "@actions/d", transitions: {success: flo.Completed, failure: flo.Failed}}}}
                e: {start: {run: "@actions/e"}, steps: [{name: f, run: "@actions/f"}]}
        "#,
        expect![[r#"
            error[E510]: expected steps[0].parallel.branches.a to be a block, but it is the number 7
             --> w.yaml:8:12
              |
            8 |         a: 7
              |            ^
              = hint: a block is a step, a list of steps, or a mapping with `start` and `steps`

            error[E510]: expected a list of steps, but it is empty
             --> w.yaml:9:12
              |
            9 |         b: []
              |            ^

            error[E510]: expected steps[0].parallel.branches.c to have a start step, but it is missing
              --> w.yaml:10:9
               |
            10 |         c: {steps: {d: {run: "@actions/d", transitions: {success: flo.Completed, failure: flo.Failed}}}}
               |         ^
               = hint: add `start:`, or make `steps:` a list

            error[E510]: expected no `start` beside a list of steps, whose first one is the start step
              --> w.yaml:11:13
               |
            11 |         e: {start: {run: "@actions/e"}, steps: [{name: f, run: "@actions/f"}]}
               |             ^^^^^
               = hint: move it to the top of the list, with a `name:`

            warning[E301]: step "d" cannot be reached from the start
              --> w.yaml:10:21
               |
            10 |         c: {steps: {d: {run: "@actions/d", transitions: {success: flo.Completed, failure: flo.Failed}}}}
               |                     ^
        "#]],
    );
}

#[test]
fn a_parallel_step_has_branches() {
    check_body(
        r#"
        steps:
          - {name: a, parallel: {}}
          - {name: b, parallel: {branches: {}}}
          - {name: c, parallel: {branches: {d: {run: "@actions/d"}}, joins: all}}
        "#,
        expect![[r#"
            error[E100]: expected steps[0].parallel to have `branches`, but it is missing
             --> w.yaml:5:15
              |
            5 |   - {name: a, parallel: {}}
              |               ^^^^^^^^

            error[E100]: expected steps[1].parallel.branches to have a branch, but it is empty
             --> w.yaml:6:36
              |
            6 |   - {name: b, parallel: {branches: {}}}
              |                                    ^

            error[E100]: unknown key "joins" at steps[2].parallel
             --> w.yaml:7:62
              |
            7 |   - {name: c, parallel: {branches: {d: {run: "@actions/d"}}, joins: all}}
              |                                                              ^^^^^
              = hint: did you mean "join"?
        "#]],
    );
}

#[test]
fn e515_a_transition_out_of_its_block() {
    check_body(
        r#"
        start:
          parallel:
            branches:
              a: {start: {run: "@actions/a", transitions: {success: b, failure: start}}}
              b: {run: "@actions/b"}
          transitions: {success: a, failure: flo.End.odd}
        "#,
        expect![[r#"
            error[E515]: expected start.parallel.branches.a.start.transitions.success to lead to a step of the same block, but it leads out of it
             --> w.yaml:7:61
              |
            7 |       a: {start: {run: "@actions/a", transitions: {success: b, failure: start}}}
              |                                                             ^
              = hint: a block ends at `flo.Completed`, `flo.Failed` or `flo.End.NAME`

            error[E515]: expected start.parallel.branches.a.start.transitions.failure to lead to a step of the same block, but it leads out of it
             --> w.yaml:7:73
              |
            7 |       a: {start: {run: "@actions/a", transitions: {success: b, failure: start}}}
              |                                                                         ^^^^^
              = hint: a block ends at `flo.Completed`, `flo.Failed` or `flo.End.NAME`

            error[E515]: expected start.transitions.success to lead to a step of the same block, but it leads out of it
             --> w.yaml:9:26
              |
            9 |   transitions: {success: a, failure: flo.End.odd}
              |                          ^
              = hint: a block ends at `flo.Completed`, `flo.Failed` or `flo.End.NAME`

            error[E201]: expected start.transitions.failure to lead to a step or terminal, but there is no "flo.End.odd"
             --> w.yaml:9:38
              |
            9 |   transitions: {success: a, failure: flo.End.odd}
              |                                      ^^^^^^^^^^^
        "#]],
    );
}

/// A workflow with as many branches, each with a single step.
fn wide(branches: usize) -> String {
    let mut text = format!("{HEAD}steps:\n- name: fan\n  parallel:\n    branches:\n");
    for number in 0..branches {
        writeln!(text, "      b{number}: {{run: \"@actions/a\"}}")
            .expect("a string takes any text");
    }
    text
}

/// A workflow of as many nested blocks.
fn deep(blocks: usize) -> String {
    let mut text = format!("{HEAD}steps:\n- name: s0\n");
    for number in 1..=blocks {
        let indent = " ".repeat(2 * number);
        writeln!(
            text,
            "{indent}parallel: {{branches: {{b{number}: {{name: s{number},"
        )
        .expect("a string takes any text");
    }
    text + &" ".repeat(40) + "run: \"@actions/a\"" + &"}}}".repeat(blocks) + "\n"
}

/// The messages of the errors of a text.
fn errors(text: &str) -> Vec<String> {
    let parsed = flotilla_dsl::parse(text);
    let errors = parsed
        .findings
        .iter()
        .filter(|finding| finding.code.as_str() < "E300" || finding.code.as_str() == "E520");
    errors
        .map(|finding| format!("{} {}", finding.code, finding.message))
        .collect()
}

#[test]
fn e520_more_branches_blocks_or_active_steps_than_allowed() {
    assert_eq!(errors(&wide(64)), [""; 0]);
    assert_eq!(
        errors(&wide(65)),
        ["E520 expected at most 64 branches, but this is one more"]
    );
    assert_eq!(errors(&deep(16)), [""; 0]);
    assert_eq!(
        errors(&deep(17)),
        ["E520 expected at most 16 nested blocks, but this is one more"]
    );
    let mut text = format!("{HEAD}steps:\n- name: fan\n  parallel:\n    branches:\n");
    for outer in 0..16 {
        writeln!(
            text,
            "      o{outer}:\n        parallel:\n          branches:"
        )
        .expect("text");
        for inner in 0..62 {
            writeln!(
                text,
                "            i{outer}_{inner}: {{run: \"@actions/a\"}}"
            )
            .expect("text");
        }
    }
    // 1 for the outer step, and 63 for each of its branches.
    assert_eq!(
        errors(&text),
        [
            "E520 expected at most 1000 active steps at the same time, but this step and its blocks can have 1009"
        ]
    );
    assert_eq!(
        errors(&text.replacen(
            "      o15:",
            "      x: {run: \"@actions/a\"}\n      o15:",
            0
        ))
        .len(),
        1
    );
    let fewer: String = text
        .lines()
        .filter(|line| !line.contains("_61:"))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(errors(&fewer), [""; 0]);
}

#[test]
fn more_branches_than_a_definition_may_have_steps_are_refused() {
    let mut text = format!("{HEAD}steps:\n");
    for step in 0..1_100 {
        writeln!(text, "- name: s{step}\n  parallel:\n    branches:").expect("text");
        for branch in 0..64 {
            writeln!(text, "      {step}_{branch}: &a{step}_{branch} {{}}").expect("text");
        }
        if text.len() > 1_000_000 {
            break;
        }
    }
    let parsed = flotilla_dsl::parse(&text);
    assert!(parsed.is_refused());
}

#[test]
fn joins_are_words_or_numbers() {
    let joins = ["all", "any", "first", "1", "2"].map(|join| {
        let body = format!(
            "steps:\n- name: fan\n  parallel:\n    join: {join}\n    branches: {{a: {{run: \"@actions/a\"}}, \
             b: {{run: \"@actions/b\"}}}}\n"
        );
        let definition = accept_body(&body);
        match &definition.steps[0].kind {
            StepKind::Parallel(parallel) => (parallel.join, parallel.on_failure),
            other => panic!("expected branches, but found {other:?}"),
        }
    });
    let expected = [
        Join::All,
        Join::Any,
        Join::First,
        Join::Count(1),
        Join::Count(2),
    ];
    assert_eq!(joins, expected.map(|join| (join, OnFailure::Settle)));
}

#[test]
fn e516_a_join_out_of_range_and_e524_an_on_failure_without_effect() {
    check_body(
        r#"
        steps:
          - name: a
            parallel: {branches: {b: {run: "@actions/b"}}, join: 2}
          - name: c
            parallel: {branches: {d: {run: "@actions/d"}}, join: 0}
          - name: e
            parallel: {branches: {f: {run: "@actions/f"}}, join: some}
          - name: g
            parallel: {branches: {h: {run: "@actions/h"}}, join: any, onFailure: cancel}
          - name: i
            parallel: {branches: {j: {run: "@actions/j"}}, onFailure: stop}
          - name: k
            parallel: {branches: {l: {run: "@actions/l"}}, join: "1"}
        "#,
        expect![[r#"
            error[E516]: expected steps[0].parallel.join to be from 1 to 1, but it is the number 2
             --> w.yaml:6:58
              |
            6 |     parallel: {branches: {b: {run: "@actions/b"}}, join: 2}
              |                                                          ^

            error[E516]: expected steps[1].parallel.join to be from 1 to 1, but it is the number 0
             --> w.yaml:8:58
              |
            8 |     parallel: {branches: {d: {run: "@actions/d"}}, join: 0}
              |                                                          ^

            error[E100]: expected steps[2].parallel.join to be one of `all`, `any`, `first`, but it is the string "some"
              --> w.yaml:10:58
               |
            10 |     parallel: {branches: {f: {run: "@actions/f"}}, join: some}
               |                                                          ^^^^

            error[E100]: expected steps[4].parallel.onFailure to be one of `settle`, `cancel`, but it is the string "stop"
              --> w.yaml:14:63
               |
            14 |     parallel: {branches: {j: {run: "@actions/j"}}, onFailure: stop}
               |                                                               ^^^^

            error[E100]: expected steps[5].parallel.join to be a number, or a word such as `any`, but it is the string "1"
              --> w.yaml:16:58
               |
            16 |     parallel: {branches: {l: {run: "@actions/l"}}, join: "1"}
               |                                                          ^^^
               = hint: write the number without quotes: 1

            warning[E524]: steps[3].parallel.onFailure has no effect beside this `join`
              --> w.yaml:12:63
               |
            12 |     parallel: {branches: {h: {run: "@actions/h"}}, join: any, onFailure: cancel}
               |                                                               ^^^^^^^^^
               = hint: remove it, or use `join: all` or a number
        "#]],
    );
}

#[test]
fn named_ends_are_bounded_and_never_execution_level() {
    let text = |ends: usize| {
        let mut text = format!("{HEAD}steps:\n- name: fan\n  parallel:\n    branches:\n");
        text.push_str(
            "      b:\n        start:\n          run: \"@actions/a\"\n          transitions:\n",
        );
        for number in 0..ends {
            writeln!(text, "            o{number}: flo.End.e{number}")
                .expect("a string takes any text");
        }
        text
    };
    assert_eq!(errors(&text(1_024)), [""; 0]);
    assert_eq!(
        errors(&text(1_025)),
        ["E100 expected at most 1024 different outcomes of `flo.End`, but this is one more"]
    );
    let reserved = text(1).replace("flo.End.e0", "flo.End.target_not_found");
    assert_eq!(errors(&reserved).len(), 1);
}

#[test]
fn a_branch_is_not_called_start() {
    check_body(
        r#"
        start:
          parallel: {branches: {start: {run: "@actions/a"}, _start: {run: "@actions/b"}}}
          transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E105]: the step name "start" is reserved for the start step
             --> w.yaml:5:25
              |
            5 |   parallel: {branches: {start: {run: "@actions/a"}, _start: {run: "@actions/b"}}}
              |                         ^^^^^
              = hint: `start` is the name of the workflow's first step

            error[E105]: the step name "_start" is reserved for the start step
             --> w.yaml:5:53
              |
            5 |   parallel: {branches: {start: {run: "@actions/a"}, _start: {run: "@actions/b"}}}
              |                                                     ^^^^^^
              = hint: `start` is the name of the workflow's first step
        "#]],
    );
}

#[test]
fn fifteen_lists_nest_within_the_levels_of_a_document() {
    let nested = |levels: usize| {
        let mut text = format!("{HEAD}steps:\n- name: s0\n");
        for level in 1..=levels {
            let indent = " ".repeat(4 * level - 2);
            writeln!(
                text,
                "{indent}parallel: {{branches: {{b{level}: [{{name: s{level},"
            )
            .expect("text");
        }
        text + &" ".repeat(80) + "run: \"@actions/a\"" + &"}]}}".repeat(levels) + "\n"
    };
    assert_eq!(errors(&nested(15)), [""; 0]);
    assert_eq!(
        errors(&nested(16)),
        ["E100 expected at most 64 levels of nesting, but this one is deeper"]
    );
}
