//! W60, W64, W65: switches, skipped steps and their expressions (E502, E513, E517, E518).

use crate::{accept_body, check_body};
use expect_test::expect;
use flotilla_engine::definition::{
    BuiltInTerminal, Part, Root, StepIndex, StepKind, Target, Variable,
};

#[test]
fn a_switch_has_arms_and_a_default() {
    let definition = accept_body(
        r#"
start:
  switch:
    - {when: "input.amount > 1000", goto: review}
    - {when: 'steps.start.outcome == null && steps["check-it"].output.ok', next: flo.Failed}
  default: flo.Completed
steps:
  review: {waitForSignal: {type: approval, timeoutMs: 1000}, transitions: {success: check-it}}
  check-it: {run: "@actions/check", skip: flo.now > timestamp(0), transitions: {success: start, failure: flo.Failed}}
"#,
    );
    let StepKind::Switch(switch) = &definition.steps[0].kind else {
        panic!("expected a switch");
    };
    let [first, second] = &switch.arms[..] else {
        panic!("expected two arms");
    };
    assert_eq!(first.when.text, "input.amount > 1000");
    assert_eq!(first.when.variables, [Variable::Root(Root::Input)]);
    assert_eq!(first.target, Target::Step(StepIndex(1)));
    let of_start = Variable::Root(Root::StepOutcome(StepIndex::START));
    let of_check = Variable::Root(Root::StepOutput(StepIndex(2)));
    assert_eq!(second.when.variables, [of_start, of_check]);
    assert_eq!(second.target, Target::BuiltIn(BuiltInTerminal::Failed));
    let completed = Target::BuiltIn(BuiltInTerminal::Completed);
    assert_eq!(switch.default, Some(completed));
    let skip_if = definition.steps[2].skip_if.as_ref();
    assert_eq!(skip_if.expect("a condition").variables, [Variable::Now]);
    assert!(definition.steps.iter().all(|step| step.may_repeat));
}

#[test]
fn a_whole_step_and_the_whole_of_flo_are_maps() {
    let definition = accept_body(
        r#"
steps:
  - {name: one, run: "@actions/one"}
  - {name: two, run: "@actions/two", skipIf: "size(steps.one) == 2 && 'now' in flo"}
"#,
    );
    let skip_if = definition.steps[1].skip_if.as_ref().expect("a condition");
    assert_eq!(skip_if.variables.len(), 12);
}

#[test]
fn unknown_names_are_refused_with_a_suggestion() {
    check_body(
        r#"
start:
  switch:
    - {when: "inptu.amount > 1000", goto: check-it}
    - {when: "steps.check.output == 1", goto: check-it}
    - {when: "steps.missing.output == 1", goto: check-it}
    - {when: "steps.start.result == 1", goto: check-it}
    - {when: "flo.run == 'a'", goto: check-it}
    - {when: "steps", goto: check-it}
    - {when: "[1].all(x, y > 1)", goto: check-it}
  default: flo.Completed
steps:
  check-it: {run: "@actions/check", transitions: {success: flo.Completed, failure: flo.Failed}}
"#,
        expect![[r#"
            error[E513]: invalid expression at column 1 of "inptu.amount > 1000": there is no name "inptu"
             --> w.yaml:6:14
              |
            6 |     - {when: "inptu.amount > 1000", goto: check-it}
              |              ^^^^^^^^^^^^^^^^^^^^^
              = hint: did you mean `input`?

            error[E513]: invalid expression at column 1 of "steps.check.output == 1": there is no step "check"
             --> w.yaml:7:14
              |
            7 |     - {when: "steps.check.output == 1", goto: check-it}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^
              = hint: did you mean `steps["check-it"]`?

            error[E513]: invalid expression at column 1 of "steps.missing.output == 1": there is no step "missing"
             --> w.yaml:8:14
              |
            8 |     - {when: "steps.missing.output == 1", goto: check-it}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "steps.start.result == 1": a step has `outcome` and `output`, but no "result"
             --> w.yaml:9:14
              |
            9 |     - {when: "steps.start.result == 1", goto: check-it}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "flo.run == 'a'": there is no "run" in `flo`
              --> w.yaml:10:14
               |
            10 |     - {when: "flo.run == 'a'", goto: check-it}
               |              ^^^^^^^^^^^^^^^^

            error[E513]: invalid expression at column 1 of "steps": expected the name of a step after `steps`
              --> w.yaml:11:14
               |
            11 |     - {when: "steps", goto: check-it}
               |              ^^^^^^^

            error[E513]: invalid expression at column 12 of "[1].all(x, y > 1)": there is no name "y"
              --> w.yaml:12:14
               |
            12 |     - {when: "[1].all(x, y > 1)", goto: check-it}
               |              ^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn invalid_expressions_are_refused_with_the_place() {
    check_body(
        r#"
start:
  switch:
    - {when: "input.amount >", goto: flo.Completed}
    - {when: "input.email.matches('(?=a)')", goto: flo.Completed}
    - {when: "input.email.matches(input.pattern)", goto: flo.Completed}
    - {when: "lenght(input.list) > 1", goto: flo.Completed}
    - {when: true, goto: flo.Completed}
    - {goto: flo.Completed}
    - {when: "true"}
    - {when: "true", goto: nowhere}
  default: nowhere
"#,
        expect![[r#"
            error[E517]: invalid expression at column 15 of "input.amount >": the expression is incomplete
             --> w.yaml:6:14
              |
            6 |     - {when: "input.amount >", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^

            error[E518]: invalid expression at column 21 of "input.email.matches('(?=a)')": invalid regular expression: look-around, including look-ahead and look-behind, is not supported
             --> w.yaml:7:14
              |
            7 |     - {when: "input.email.matches('(?=a)')", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error[E518]: invalid expression at column 26 of "input.email.matches(input.pattern)": expected the pattern of `matches` to be a literal string
             --> w.yaml:8:14
              |
            8 |     - {when: "input.email.matches(input.pattern)", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error[E517]: invalid expression at column 1 of "lenght(input.list) > 1": there is no function "lenght"
             --> w.yaml:9:14
              |
            9 |     - {when: "lenght(input.list) > 1", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^

            error[E100]: expected start.switch[4].when to be a string, but it is the boolean true
              --> w.yaml:10:14
               |
            10 |     - {when: true, goto: flo.Completed}
               |              ^^^^
               = hint: quote it: "true"

            error[E100]: expected start.switch[5] to have `when`, but it is missing
              --> w.yaml:11:7
               |
            11 |     - {goto: flo.Completed}
               |       ^

            error[E100]: expected start.switch[6] to have `goto`, but it is missing
              --> w.yaml:12:7
               |
            12 |     - {when: "true"}
               |       ^

            error[E201]: expected start.switch[7].goto to lead to a step or terminal, but there is no "nowhere"
              --> w.yaml:13:28
               |
            13 |     - {when: "true", goto: nowhere}
               |                            ^^^^^^^

            error[E201]: expected start.default to lead to a step or terminal, but there is no "nowhere"
              --> w.yaml:14:12
               |
            14 |   default: nowhere
               |            ^^^^^^^
        "#]],
    );
}

#[test]
fn a_switch_has_no_keys_of_run_steps_and_others_no_default() {
    check_body(
        r#"
start:
  switch: []
  retry: {max_attempts: 3}
steps:
  one: {run: "@actions/one", default: flo.Completed, transitions: {success: two, failure: flo.Failed}}
  two: {run: "@actions/two", switch: [{when: "true", goto: flo.Completed}], transitions: {success: flo.Completed, failure: flo.Failed}}
"#,
        expect![[r#"
            error[E100]: expected start.switch to have an arm, but it is empty
             --> w.yaml:5:11
              |
            5 |   switch: []
              |           ^
              = hint: such as `- {when: "input.amount > 1000", goto: review}`

            error[E100]: expected start to have no `retry`, since it is a switch
             --> w.yaml:6:3
              |
            6 |   retry: {max_attempts: 3}
              |   ^^^^^

            error[E100]: expected steps.one to have no `default`, since it is not a switch
             --> w.yaml:8:30
              |
            8 |   one: {run: "@actions/one", default: flo.Completed, transitions: {success: two, failure: flo.Failed}}
              |                              ^^^^^^^

            error[E100]: expected steps.two to have one of `run`, `waitForSignal`, `parallel`, `block`, `forEach`, `switch`, `emit`, `wait`, `approval` and `set`, but it has `run` and `switch`
             --> w.yaml:9:3
              |
            9 |   two: {run: "@actions/two", switch: [{when: "true", goto: flo.Completed}], transitions: {success: flo.Completed, failur…
              |   ^^^

            warning[E303]: no path leads from step "start" to a terminal
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^

            warning[E502]: step "start" has no `default`: the run fails if no condition is true
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^
              = hint: add `default`

            warning[E301]: step "one" cannot be reached from the start
             --> w.yaml:8:3
              |
            8 |   one: {run: "@actions/one", default: flo.Completed, transitions: {success: two, failure: flo.Failed}}
              |   ^^^

            warning[E301]: step "two" cannot be reached from the start
             --> w.yaml:9:3
              |
            9 |   two: {run: "@actions/two", switch: [{when: "true", goto: flo.Completed}], transitions: {success: flo.Completed, failur…
              |   ^^^
        "#]],
    );
}

#[test]
fn a_switch_without_a_match_must_lead_somewhere_in_a_graph() {
    check_body(
        r#"
start:
  switch: [{when: "input.a", goto: list}]
steps:
  list:
    switch: [{when: "input.b", goto: flo.Completed}]
    transitions: {no_match: flo.Failed}
"#,
        expect![[r#"
            warning[E502]: step "start" has no `default`: the run fails if no condition is true
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^
              = hint: add `default`
        "#]],
    );
}

#[test]
fn in_a_list_a_switch_leads_on_unless_it_has_a_default() {
    check_body(
        r#"
steps:
  - {name: one, switch: [{when: "input.a", goto: three}]}
  - {name: two, switch: [{when: "input.b", goto: flo.Completed}], default: four}
  - {name: three, run: "@actions/three", transitions: {success: flo.Completed}}
  - {name: four, run: "@actions/four", transitions: {success: flo.Completed}}
  - {name: five, run: "@actions/five"}
"#,
        expect![[r#"
            warning[E301]: step "five" cannot be reached from the start
             --> w.yaml:9:12
              |
            9 |   - {name: five, run: "@actions/five"}
              |            ^^^^
        "#]],
    );
}

#[test]
fn the_name_of_a_target_must_be_an_outcome() {
    let long = "x".repeat(65);
    check_body(
        &format!(
            r#"
start:
  switch: [{{when: "input.a", goto: {long}}}]
  default: flo.Completed
steps:
  {long}: {{run: "@actions/a", transitions: {{success: flo.Completed, failure: flo.Failed}}}}
"#
        ),
        expect![[r#"
            error[E100]: expected the target of `goto` to have a name that can be an outcome, but "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" cannot: expected an outcome to be 1 to 64 letters, digits, `_`, `-` or `.`, but it is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
             --> w.yaml:5:36
              |
            5 |   switch: [{when: "input.a", goto: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}]
              |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn the_expressions_of_a_definition_are_bounded_together() {
    let condition = format!("input.a == '{}'", "x".repeat(4_000));
    let arm = format!("    - {{when: \"{condition}\", goto: flo.Completed}}\n");
    let body = |count: usize| {
        format!(
            "\nstart:\n  switch:\n{}  default: flo.Completed\n",
            arm.repeat(count)
        )
    };
    accept_body(&body(32));
    let refused = flotilla_dsl::parse(&format!("{}{}", crate::HEAD, body(33)));
    let messages: Vec<&str> = refused
        .findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(
        messages,
        ["expected at most 131072 bytes of expressions, but this one exceeds them"]
    );
}

#[test]
fn a_mapping_may_contain_expressions() {
    let definition = accept_body(
        r#"
start:
  run: "@actions/charge"
  inputMapping: {total: {cel: "input.amount * 1.2"}, lines: [{cel: "size(input.lines)"}], both: {cel: a, other: b}}
  transitions: {success: flo.Completed, failure: flo.Failed}
output: {cel: "steps.start.output"}
"#,
    );
    let StepKind::Run(run) = &definition.steps[0].kind else {
        panic!("expected a run step");
    };
    let input = run.call.input.as_ref().expect("a mapping");
    let texts: Vec<&str> = input.expressions().map(|of| of.text.as_str()).collect();
    assert_eq!(texts, ["input.amount * 1.2", "size(input.lines)"]);
    let output = definition.output.expect("an output");
    let output = output.extract.expect("a mapping");
    assert!(matches!(output.parts[..], [Part::Expression(_)]));
}

#[test]
fn an_invalid_expression_in_a_mapping_is_refused() {
    check_body(
        r#"
start:
  run: "@actions/charge"
  inputMapping: {a: {cel: "1 +"}, b: {cel: 1}, c: {cel: "inptu"}}
  transitions: {success: flo.Completed, failure: flo.Failed}
output: '{"cel": "x"}'
"#,
        expect![[r#"
            error[E517]: invalid expression at column 4 of "1 +": the expression is incomplete
             --> w.yaml:6:27
              |
            6 |   inputMapping: {a: {cel: "1 +"}, b: {cel: 1}, c: {cel: "inptu"}}
              |                           ^^^^^

            error[E100]: expected the value of `cel` to be an expression in a string, but it is the number 1
             --> w.yaml:6:44
              |
            6 |   inputMapping: {a: {cel: "1 +"}, b: {cel: 1}, c: {cel: "inptu"}}
              |                                            ^

            error[E513]: invalid expression at column 1 of "inptu": there is no name "inptu"
             --> w.yaml:6:57
              |
            6 |   inputMapping: {a: {cel: "1 +"}, b: {cel: 1}, c: {cel: "inptu"}}
              |                                                         ^^^^^^^
              = hint: did you mean `input`?

            error[E513]: invalid expression at column 1 of "x": there is no name "x"
             --> w.yaml:8:18
              |
            8 | output: '{"cel": "x"}'
              |                  ^^^
        "#]],
    );
}

#[test]
fn transitions_that_no_step_of_the_kind_takes_are_reported_also_in_lists() {
    check_body(
        r#"
steps:
  - {name: review, approval: {timeout: PT1H}, transitions: {reject: review}}
  - {name: pause, wait: {duration: 1s}, transitions: {timeout: review}}
  - {name: note, set: {a: 1}, transitions: {bar: review}}
  - {name: confirm, waitForSignal: {type: go, timeoutMs: 10}, transitions: {succes: review, timeout: review}}
  - {name: each, forEach: {items: $.input.a, do: {run: "@actions/a"}}, transitions: {lost: review}}
"#,
        expect![[r#"
            warning[E502]: the transition `reject` of step "review" is never taken, since the step waits for a decision
             --> w.yaml:5:61
              |
            5 |   - {name: review, approval: {timeout: PT1H}, transitions: {reject: review}}
              |                                                             ^^^^^^
              = hint: did you mean "rejected"?

            warning[E502]: the transition `timeout` of step "pause" is never taken, since the step waits for a time
             --> w.yaml:6:55
              |
            6 |   - {name: pause, wait: {duration: 1s}, transitions: {timeout: review}}
              |                                                       ^^^^^^^

            warning[E502]: the transition `bar` of step "note" is never taken, since the step only sets state
             --> w.yaml:7:45
              |
            7 |   - {name: note, set: {a: 1}, transitions: {bar: review}}
              |                                             ^^^

            warning[E502]: the transition `succes` of step "confirm" is never taken, since the step waits for a signal
             --> w.yaml:8:77
              |
            8 |   - {name: confirm, waitForSignal: {type: go, timeoutMs: 10}, transitions: {succes: review, timeout: review}}
              |                                                                             ^^^^^^
              = hint: did you mean "success"?

            warning[E502]: the transition `lost` of step "each" is never taken, since the step iterates over items
             --> w.yaml:9:86
              |
            9 |   - {name: each, forEach: {items: $.input.a, do: {run: "@actions/a"}}, transitions: {lost: review}}
              |                                                                                      ^^^^
        "#]],
    );
}

#[test]
fn transitions_that_a_switch_never_takes_are_reported() {
    check_body(
        r#"
start:
  switch: [{when: "input.a", goto: flo.Completed}]
  default: flo.Failed
  transitions: {no_match: flo.Failed, default: flo.Failed, failure: flo.Failed}
"#,
        expect![[r#"
            warning[E502]: the transition `no_match` of step "start" is never taken, since the step is a switch
             --> w.yaml:7:17
              |
            7 |   transitions: {no_match: flo.Failed, default: flo.Failed, failure: flo.Failed}
              |                 ^^^^^^^^

            warning[E502]: the transition `default` of step "start" is never taken, since the step is a switch
             --> w.yaml:7:39
              |
            7 |   transitions: {no_match: flo.Failed, default: flo.Failed, failure: flo.Failed}
              |                                       ^^^^^^^
        "#]],
    );
}

#[test]
fn a_skipped_step_must_lead_somewhere_in_a_graph() {
    check_body(
        r#"
start:
  run: "@actions/a"
  skipIf: input.a
  transitions: {done: flo.Completed, failure: flo.Failed}
"#,
        expect![[r#"
            warning[E502]: outcome `skipped` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^
              = hint: add a transition for `skipped`
        "#]],
    );
}

#[test]
fn expressions_and_their_patterns_are_bounded_together() {
    let arms = |count: usize, condition: &str| {
        let arm = format!("    - {{when: \"{condition}\", goto: flo.Completed}}\n");
        format!(
            "\nstart:\n  switch:\n{}  default: flo.Completed\n",
            arm.repeat(count)
        )
    };
    accept_body(&arms(1_024, "1<0"));
    let messages = |body: String| {
        let findings = flotilla_dsl::parse(&format!("{}{body}", crate::HEAD)).findings;
        let messages = findings.into_iter().map(|finding| finding.message);
        messages.collect::<Vec<_>>()
    };
    assert_eq!(
        messages(arms(1_025, "1<0")),
        ["expected at most 1024 expressions, but this is one more"]
    );
    let large = messages(arms(9, "input.a.matches('(a?){1000}(b?){1000}')"));
    assert_eq!(
        large,
        [
            "expected regular expressions of at most 32768 instructions together, but this one exceeds them"
        ]
    );
    // What is too large is not compiled again and again.
    let refused = messages(arms(
        20,
        "input.a.matches('(a?){1000}(b?){1000}(c?){1000}')",
    ));
    assert_eq!(refused.len(), 20);
    let skipped = "the regular expressions before this one are too large";
    assert_eq!(
        refused.iter().filter(|message| *message == skipped).count(),
        11
    );
}

#[test]
fn transitions_that_a_switch_in_a_list_never_takes_are_reported_too() {
    let text = r#"
steps:
  - name: choose
    switch: [{when: "input.a", goto: flo.Completed}]
    default: flo.Failed
    transitions: {no_match: flo.Failed, default: flo.Failed}
"#;
    check_body(
        text,
        expect![[r#"
        warning[E502]: the transition `no_match` of step "choose" is never taken, since the step is a switch
         --> w.yaml:8:19
          |
        8 |     transitions: {no_match: flo.Failed, default: flo.Failed}
          |                   ^^^^^^^^

        warning[E502]: the transition `default` of step "choose" is never taken, since the step is a switch
         --> w.yaml:8:41
          |
        8 |     transitions: {no_match: flo.Failed, default: flo.Failed}
          |                                         ^^^^^^^
    "#]],
    );
}

/// The synonyms of W2.
#[test]
fn a_switch_has_synonyms() {
    let text = r#"
start:
  switch: [{when: "input.a", goto: flo.Completed}]
  default: flo.Failed
"#;
    let synonyms = text.replace("switch:", "arms:").replace("goto:", "next:");
    assert_eq!(accept_body(text), accept_body(&synonyms));
}
