//! E201–E203, E301–E303, E501–E503, E507–E509: where steps lead, and what they refer to.

use crate::{HEAD, START, check_block, check_body};
use expect_test::expect;
use flotilla_dsl::{parse, render, unregistered};

#[test]
fn e201_a_transition_that_leads_nowhere() {
    check_body(
        r#"
        start:
          run: "@actions/a"
          transitions:
            success: chrage
            failure: Failed
        steps:
          charge: {run: "@actions/b", transitions: {success: Done, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E201]: expected start.transitions.success to lead to a step or terminal, but there is no "chrage"
             --> w.yaml:7:14
              |
            7 |     success: chrage
              |              ^^^^^^
              = hint: did you mean "charge"?

            error[E201]: expected start.transitions.failure to lead to a step or terminal, but there is no "Failed"
             --> w.yaml:8:14
              |
            8 |     failure: Failed
              |              ^^^^^^
              = hint: did you mean "flo.Failed"?

            error[E201]: expected steps.charge.transitions.success to lead to a step or terminal, but there is no "Done"
              --> w.yaml:10:54
               |
            10 |   charge: {run: "@actions/b", transitions: {success: Done, failure: flo.Failed}}
               |                                                      ^^^^
        "#]],
    );
}

#[test]
fn e201_a_timeout_that_leads_nowhere() {
    check_body(
        r#"
        start:
          waitForSignal: {type: t, timeoutMs: 5, onTimeout: nowhere}
          transitions: {success: flo.Completed}
        "#,
        expect![[r#"
            error[E201]: expected start.waitForSignal.onTimeout to lead to a step or terminal, but there is no "nowhere"
             --> w.yaml:5:53
              |
            5 |   waitForSignal: {type: t, timeoutMs: 5, onTimeout: nowhere}
              |                                                     ^^^^^^^
        "#]],
    );
}

#[test]
fn e202_malformed_targets() {
    check_body(
        r#"
        start: {run: "@action/a", transitions: {success: b, failure: c}}
        steps:
          b: {run: charge, transitions: {success: c, failure: flo.Failed}}
          c: {run: "@workflow/x:", transitions: {success: d, failure: flo.Failed}}
          d: {run: "@actions/", transitions: {success: e, failure: flo.Failed}}
          e: {run: "@plan/a b", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E202]: expected start.run to be `@actions/NAME`, `@plan/NAME` or `@workflow/NAME[:VERSION]`, but it is the string "@action/a"
             --> w.yaml:4:14
              |
            4 | start: {run: "@action/a", transitions: {success: b, failure: c}}
              |              ^^^^^^^^^^^
              = hint: did you mean "@actions/a"?

            error[E202]: expected steps.b.run to be `@actions/NAME`, `@plan/NAME` or `@workflow/NAME[:VERSION]`, but it is the string "charge"
             --> w.yaml:6:12
              |
            6 |   b: {run: charge, transitions: {success: c, failure: flo.Failed}}
              |            ^^^^^^
              = hint: did you mean "@actions/charge"?

            error[E202]: expected a workflow version to be 1 to 256 bytes without control characters, but it is ""
             --> w.yaml:7:12
              |
            7 |   c: {run: "@workflow/x:", transitions: {success: d, failure: flo.Failed}}
              |            ^^^^^^^^^^^^^^

            error[E202]: expected an action name to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is ""
             --> w.yaml:8:12
              |
            8 |   d: {run: "@actions/", transitions: {success: e, failure: flo.Failed}}
              |            ^^^^^^^^^^^

            error[E202]: expected a plan name to be a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes, but it is "a b"
             --> w.yaml:9:12
              |
            9 |   e: {run: "@plan/a b", transitions: {success: flo.Completed, failure: flo.Failed}}
              |            ^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn e202_an_executor_that_is_not_an_action() {
    check_block(
        r#"
        plans:
          p:
            executors:
              - {name: a, action: "@workflow/x"}
              - {name: b, action: charge}
        "#,
        expect![[r#"
            error[E202]: expected plans.p.executors[0].action to be `@actions/NAME`, but it is the string "@workflow/x"
             --> w.yaml:7:27
              |
            7 |       - {name: a, action: "@workflow/x"}
              |                           ^^^^^^^^^^^^^

            error[E202]: expected plans.p.executors[1].action to be `@actions/NAME`, but it is the string "charge"
             --> w.yaml:8:27
              |
            8 |       - {name: b, action: charge}
              |                           ^^^^^^
              = hint: did you mean "@actions/charge"?
        "#]],
    );
}

#[test]
fn e203_a_plan_that_is_not_defined() {
    check_body(
        r#"
        plans:
          payment: {executors: [{name: a, run: "@actions/a"}]}
        start: {run: "@plan/payments", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[r#"
            error[E203]: there is no plan "payments" in this definition
             --> w.yaml:6:14
              |
            6 | start: {run: "@plan/payments", transitions: {success: flo.Completed, failure: flo.Failed}}
              |              ^^^^^^^^^^^^^^^^
              = hint: did you mean "payment"?
        "#]],
    );
}

#[test]
fn e301_a_step_that_is_not_reachable() {
    check_body(
        &format!(
            "{START}steps:\n  lost: {{run: \"@actions/a\", transitions: {{success: flo.Completed, failure: flo.Failed}}}}\n"
        ),
        expect![[r#"
            warning[E301]: step "lost" cannot be reached from the start
             --> w.yaml:6:3
              |
            6 |   lost: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
              |   ^^^^
        "#]],
    );
}

#[test]
fn e301_a_timeout_is_a_way_to_a_step() {
    check_body(
        r#"
        start:
          waitForSignal: {type: t, timeoutMs: 5, onTimeout: late}
          transitions: {success: flo.Completed}
        steps:
          late: {run: "@actions/a", transitions: {success: flo.Completed, failure: flo.Failed}}
        "#,
        expect![[""]],
    );
}

#[test]
fn e302_a_terminal_that_nothing_reaches() {
    check_body(
        &format!("terminals:\n  Unused: {{status: failed}}\n{START}"),
        expect![[r#"
            warning[E302]: no transition reaches the terminal "Unused"
             --> w.yaml:5:3
              |
            5 |   Unused: {status: failed}
              |   ^^^^^^
        "#]],
    );
}

#[test]
fn e303_steps_that_cannot_end() {
    check_body(
        r#"
        start: {run: "@actions/a", transitions: {success: b, failure: flo.Failed}}
        steps:
          b: {run: "@actions/a", transitions: {success: c, failure: c}}
          c: {run: "@actions/a", transitions: {success: b, failure: b}}
        "#,
        expect![[r#"
            warning[E303]: no path leads from step "b" to a terminal
             --> w.yaml:6:3
              |
            6 |   b: {run: "@actions/a", transitions: {success: c, failure: c}}
              |   ^

            warning[E303]: no path leads from step "c" to a terminal
             --> w.yaml:7:3
              |
            7 |   c: {run: "@actions/a", transitions: {success: b, failure: b}}
              |   ^
        "#]],
    );
}

#[test]
fn e501_terminals_without_a_known_status() {
    check_body(
        r#"
        terminals:
          A: {status: done}
          B: {}
        start: {run: "@actions/a", transitions: {success: A, failure: B}}
        "#,
        expect![[r#"
            error[E501]: expected terminals.A.status to be one of `completed`, `failed`, `cancelled`, `timed_out`, but it is the string "done"
             --> w.yaml:5:15
              |
            5 |   A: {status: done}
              |               ^^^^

            error[E501]: expected terminals.B to have a `status`, but it is missing
             --> w.yaml:6:3
              |
            6 |   B: {}
              |   ^
              = hint: one of `completed`, `failed`, `cancelled`, `timed_out`
        "#]],
    );
}

#[test]
fn e502_outcomes_that_have_nowhere_to_go() {
    check_body(
        r#"
        start: {run: "@actions/a", transitions: {success: b}}
        steps:
          b:
            run: "@actions/b"
            poll: {}
            transitions:
              success: c
              failure: d
              pending: d
          c: {waitForSignal: {type: t, timeoutMs: 1}, transitions: {failure: d}}
          d: {run: "@actions/d"}
        "#,
        expect![[r#"
            warning[E303]: no path leads from step "start" to a terminal
             --> w.yaml:4:1
              |
            4 | start: {run: "@actions/a", transitions: {success: b}}
              | ^^^^^

            warning[E502]: outcome `failure` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start: {run: "@actions/a", transitions: {success: b}}
              | ^^^^^
              = hint: add a transition for `failure`

            warning[E303]: no path leads from step "b" to a terminal
             --> w.yaml:6:3
              |
            6 |   b:
              |   ^

            warning[E502]: outcome `timeout` of step "b" has no transition: the run fails there
             --> w.yaml:6:3
              |
            6 |   b:
              |   ^
              = hint: add a transition for `timeout`

            warning[E502]: the transition `pending` of step "b" is never taken, since the step polls
              --> w.yaml:12:7
               |
            12 |       pending: d
               |       ^^^^^^^

            warning[E303]: no path leads from step "c" to a terminal
              --> w.yaml:13:3
               |
            13 |   c: {waitForSignal: {type: t, timeoutMs: 1}, transitions: {failure: d}}
               |   ^

            warning[E502]: outcome `success` of step "c" has no transition: the run fails there
              --> w.yaml:13:3
               |
            13 |   c: {waitForSignal: {type: t, timeoutMs: 1}, transitions: {failure: d}}
               |   ^
               = hint: add a transition for `success`

            warning[E303]: no path leads from step "d" to a terminal
              --> w.yaml:14:3
               |
            14 |   d: {run: "@actions/d"}
               |   ^

            warning[E502]: step "d" has no transitions: the run fails when the step ends
              --> w.yaml:14:3
               |
            14 |   d: {run: "@actions/d"}
               |   ^
        "#]],
    );
}

#[test]
fn e503_a_wait_without_a_timeout() {
    check_body(
        r#"
        start:
          waitForSignal:
            type: approval
          transitions: {success: flo.Completed}
        "#,
        expect![[r#"
            warning[E503]: step "start" waits without a timeout, possibly forever
             --> w.yaml:5:3
              |
            5 |   waitForSignal:
              |   ^^^^^^^^^^^^^
              = hint: add `timeoutMs`
        "#]],
    );
}

#[test]
fn e507_targets_that_are_not_registered() {
    let text = format!(
        "{HEAD}trigger: {{stream: orders, namespace: prod}}\nplans:\n  p: {{executors: [{{name: e, action: \"@actions/charge\"}}]}}\nstart: {{run: \"@workflow/child:2.0\", transitions: {{success: b, failure: flo.Failed}}}}\nsteps:\n  b: {{run: \"@plan/p\", transitions: {{success: flo.Completed, failure: flo.Failed}}}}\n"
    );
    let parsed = parse(&text);
    let findings: Vec<_> = parsed.references.iter().map(unregistered).collect();
    expect![[r#"
        warning[E507]: stream "orders" does not exist yet in namespace "prod"
         --> w.yaml:4:19
          |
        4 | trigger: {stream: orders, namespace: prod}
          |                   ^^^^^^
          = hint: the trigger starts with the stream's first record

        warning[E507]: action "charge" is not registered yet
         --> w.yaml:6:37
          |
        6 |   p: {executors: [{name: e, action: "@actions/charge"}]}
          |                                     ^^^^^^^^^^^^^^^^^
          = hint: until it exists, the step's outcome is `target_not_found`

        warning[E507]: workflow "child" has no version "2.0" yet
         --> w.yaml:7:14
          |
        7 | start: {run: "@workflow/child:2.0", transitions: {success: b, failure: flo.Failed}}
          |              ^^^^^^^^^^^^^^^^^^^^^
          = hint: until it exists, the step's outcome is `target_not_found`
    "#]]
    .assert_eq(&render(&findings, &text, "w.yaml"));
}

#[test]
fn e508_bad_paths_in_mappings() {
    check_body(
        r#"
        output: {total: $.steps.chrage.output}
        start:
          run: "@actions/a"
          inputMapping: '{"a": "$.inputs.a", "b": ["$.steps.charge"]}'
          transitions: {success: charge, failure: flo.Failed}
        steps:
          charge:
            run: "@actions/b"
            inputMapping:
              a: $.input.items[x]
              b: {c: $.flo.run_id.x, d: $.flo.time}
              e: $.steps.start.outcome.code
            transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E508]: invalid path "$.steps.chrage.output": there is no step "chrage"
             --> w.yaml:4:17
              |
            4 | output: {total: $.steps.chrage.output}
              |                 ^^^^^^^^^^^^^^^^^^^^^
              = hint: did you mean "charge"?

            error[E508]: invalid path "$.inputs.a": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:7:24
              |
            7 |   inputMapping: '{"a": "$.inputs.a", "b": ["$.steps.charge"]}'
              |                        ^^^^^^^^^^^^
              = hint: did you mean "input"?

            error[E508]: invalid path "$.steps.charge": expected `$.steps.NAME.output` or `$.steps.NAME.outcome`
             --> w.yaml:7:44
              |
            7 |   inputMapping: '{"a": "$.inputs.a", "b": ["$.steps.charge"]}'
              |                                            ^^^^^^^^^^^^^^^^

            error[E508]: invalid path "$.input.items[x]": expected a whole number in `[]`, but found "x"
              --> w.yaml:13:10
               |
            13 |       a: $.input.items[x]
               |          ^^^^^^^^^^^^^^^^

            error[E508]: invalid path "$.flo.run_id.x": nothing can follow `run_id`
              --> w.yaml:14:14
               |
            14 |       b: {c: $.flo.run_id.x, d: $.flo.time}
               |              ^^^^^^^^^^^^^^

            error[E508]: invalid path "$.flo.time": expected `$.flo` to be followed by one of `run_id`, `timestamp`, `workflow`, `version`, `revision`, `started_at`, `parent_run_id`, `triggered_by`, `run_attempt`
              --> w.yaml:14:33
               |
            14 |       b: {c: $.flo.run_id.x, d: $.flo.time}
               |                                 ^^^^^^^^^^

            error[E508]: invalid path "$.steps.start.outcome.code": nothing can follow `outcome`
              --> w.yaml:15:10
               |
            15 |       e: $.steps.start.outcome.code
               |          ^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn e508_bad_paths_in_search_attributes_and_cache_keys() {
    check_block(
        r#"
        searchAttributes:
          - {name: a, from: inptu.a}
          - {name: b, path: $.steps.gone.output}
        plans:
          p:
            executors: [{name: e, action: "@actions/charge"}]
            cache: {key: "a:{steps.a.output}"}
          q:
            executors: [{name: e, action: "@actions/charge"}]
            cache: {key: "a:{input.a"}
          r:
            executors: [{name: e, action: "@actions/charge"}]
            cache: {key: "a}"}
        "#,
        expect![[r#"
            error[E508]: invalid path "inptu.a": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta` or `$.flo`
             --> w.yaml:5:21
              |
            5 |   - {name: a, from: inptu.a}
              |                     ^^^^^^^
              = hint: did you mean "input"?

            error[E508]: invalid path "$.steps.gone.output": there is no step "gone"
             --> w.yaml:6:21
              |
            6 |   - {name: b, path: $.steps.gone.output}
              |                     ^^^^^^^^^^^^^^^^^^^

            error[E508]: invalid cache key "a:{steps.a.output}": "steps.a.output" begins with neither `input` nor `mapped`
              --> w.yaml:10:18
               |
            10 |     cache: {key: "a:{steps.a.output}"}
               |                  ^^^^^^^^^^^^^^^^^^^^
               = hint: placeholders are `{input.…}` and `{mapped.…}`

            error[E508]: invalid cache key "a:{input.a": `{` is not closed
              --> w.yaml:13:18
               |
            13 |     cache: {key: "a:{input.a"}
               |                  ^^^^^^^^^^^^
               = hint: placeholders are `{input.…}` and `{mapped.…}`

            error[E508]: invalid cache key "a}": `}` has no matching `{`
              --> w.yaml:16:18
               |
            16 |     cache: {key: "a}"}
               |                  ^^^^
               = hint: placeholders are `{input.…}` and `{mapped.…}`
        "#]],
    );
}

#[test]
fn e509_a_fallback_that_will_follow_success() {
    let plan = "plans:\n  p:\n    executors: [{name: e, action: \"@actions/a\"}]\n    fallback: {value: {}}\n";
    check_body(
        &format!(
            "{plan}start: {{run: \"@plan/p\", transitions: {{success: flo.Completed, failure: flo.Failed}}}}\n"
        ),
        expect![[r#"
            warning[E509]: the fallback of the plan follows `success`, since step "start" has no transition for `exhausted`
             --> w.yaml:8:14
              |
            8 | start: {run: "@plan/p", transitions: {success: flo.Completed, failure: flo.Failed}}
              |              ^^^^^^^^^
        "#]],
    );
    check_body(
        &format!(
            "{plan}start: {{run: \"@plan/p\", transitions: {{success: flo.Completed, failure: flo.Failed, exhausted: flo.Failed}}}}\n"
        ),
        expect![[""]],
    );
}
