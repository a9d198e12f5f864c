//! Hints for what is written in the manner of other languages, or as one value instead of a mapping (E100, E517).

use crate::check_body;
use expect_test::expect;

#[test]
fn expressions_of_other_languages_get_a_hint() {
    check_body(
        r#"
            start:
              switch:
                - {when: "input.a = 1", goto: flo.Completed}
                - {when: "input.a and input.b", goto: flo.Completed}
                - {when: "input.a or input.b", goto: flo.Completed}
                - {when: "not input.a", goto: flo.Completed}
                - {when: "$.input.a == 1", goto: flo.Completed}
                - {when: "len(input.list) > 1", goto: flo.Completed}
                - {when: "input.list.length() > 1", goto: flo.Completed}
              default: flo.Failed
        "#,
        expect![[r#"
            error[E517]: invalid expression at column 9 of "input.a = 1": unexpected character '= '
             --> w.yaml:6:14
              |
            6 |     - {when: "input.a = 1", goto: flo.Completed}
              |              ^^^^^^^^^^^^^
              = hint: two values are compared with `==`

            error[E517]: invalid expression at column 9 of "input.a and input.b": unexpected 'and'
             --> w.yaml:7:14
              |
            7 |     - {when: "input.a and input.b", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^^^^^^
              = hint: write `&&`

            error[E517]: invalid expression at column 9 of "input.a or input.b": unexpected 'or'
             --> w.yaml:8:14
              |
            8 |     - {when: "input.a or input.b", goto: flo.Completed}
              |              ^^^^^^^^^^^^^^^^^^^^
              = hint: write `||`

            error[E517]: invalid expression at column 5 of "not input.a": unexpected 'input'
             --> w.yaml:9:14
              |
            9 |     - {when: "not input.a", goto: flo.Completed}
              |              ^^^^^^^^^^^^^
              = hint: write `!` instead of `not`

            error[E517]: invalid expression at column 1 of "$.input.a == 1": unexpected character '$'
              --> w.yaml:10:14
               |
            10 |     - {when: "$.input.a == 1", goto: flo.Completed}
               |              ^^^^^^^^^^^^^^^^
               = hint: in an expression, `$.input` is written `input`

            error[E517]: invalid expression at column 1 of "len(input.list) > 1": there is no function "len"
              --> w.yaml:11:14
               |
            11 |     - {when: "len(input.list) > 1", goto: flo.Completed}
               |              ^^^^^^^^^^^^^^^^^^^^^
               = hint: the length of a text, list or map is `size(x)`

            error[E517]: invalid expression at column 12 of "input.list.length() > 1": there is no function "length"
              --> w.yaml:12:14
               |
            12 |     - {when: "input.list.length() > 1", goto: flo.Completed}
               |              ^^^^^^^^^^^^^^^^^^^^^^^^^
               = hint: the length of a text, list or map is `size(x)`
        "#]],
    );
}

#[test]
fn a_value_in_place_of_a_mapping_gets_an_example() {
    check_body(
        r#"
            steps:
              - {name: a, run: "@actions/a", retry: 2, compensate: "@actions/b", timeouts: [5m]}
              - {name: b, wait: 5m}
        "#,
        expect![[r#"
            error[E100]: expected steps[0].retry to be a mapping, but it is the number 2
             --> w.yaml:5:41
              |
            5 |   - {name: a, run: "@actions/a", retry: 2, compensate: "@actions/b", timeouts: [5m]}
              |                                         ^
              = hint: write retry: {max_attempts: 2}

            error[E100]: expected steps[0].compensate to be a mapping, but it is the string "@actions/b"
             --> w.yaml:5:56
              |
            5 |   - {name: a, run: "@actions/a", retry: 2, compensate: "@actions/b", timeouts: [5m]}
              |                                                        ^^^^^^^^^^^^
              = hint: write compensate: {run: "@actions/b"}

            error[E100]: expected steps[0].timeouts to be a mapping, but it is a list
             --> w.yaml:5:80
              |
            5 |   - {name: a, run: "@actions/a", retry: 2, compensate: "@actions/b", timeouts: [5m]}
              |                                                                                ^

            error[E100]: expected steps[1].wait to be a mapping, but it is the string "5m"
             --> w.yaml:6:21
              |
            6 |   - {name: b, wait: 5m}
              |                     ^^
              = hint: write wait: {duration: "5m"}
        "#]],
    );
}

#[test]
fn a_time_that_cannot_be_read_and_a_path_without_its_prefix() {
    check_body(
        r#"
            steps:
              - {name: a, wait: {until: tomorrow}}
              - {name: b, wait: {until: input.due}}
              - {name: c, wait: {until: "2026-12-24T18:00:00Z"}}
              - {name: d, wait: {until: 1798135200000}}
              - {name: e, wait: {until: true}}
              - {name: f, wait: {until: {at: $.input.due}}}
            output: input.id
        "#,
        expect![[r#"
            error[E100]: expected steps[0].wait.until to be a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression, but it is the string "tomorrow"
             --> w.yaml:5:29
              |
            5 |   - {name: a, wait: {until: tomorrow}}
              |                             ^^^^^^^^
              = hint: for example 2026-12-24T18:00:00Z

            error[E100]: expected steps[1].wait.until to be a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression, but it is the string "input.due"
             --> w.yaml:6:29
              |
            6 |   - {name: b, wait: {until: input.due}}
              |                             ^^^^^^^^^
              = hint: a path begins with `$.`: $.input.due

            error[E100]: expected steps[4].wait.until to be a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression, but it is the boolean true
             --> w.yaml:9:29
              |
            9 |   - {name: e, wait: {until: true}}
              |                             ^^^^
              = hint: for example 2026-12-24T18:00:00Z

            error[E100]: expected steps[5].wait.until to be a time in RFC 3339, milliseconds since the Unix epoch, a path or an expression, but it is a mapping
              --> w.yaml:10:29
               |
            10 |   - {name: f, wait: {until: {at: $.input.due}}}
               |                             ^
               = hint: for example 2026-12-24T18:00:00Z

            error[E100]: expected output to be JSON text, but it is not: expected value
              --> w.yaml:11:9
               |
            11 | output: input.id
               |         ^
               = hint: a path begins with `$.`: $.input.id
        "#]],
    );
}

#[test]
fn a_transition_for_success_is_missing_unless_another_outcome_may_be_chosen() {
    check_body(
        r#"
            start:
              run: "@actions/submit"
              transitions: {pending: block, failure: flo.Failed}
            steps:
              block:
                block: {name: look, run: "@actions/look", transitions: {success: flo.End.exhausted, failure: flo.Failed}}
                transitions: {exhausted: unlike, failure: flo.Failed}
              unlike:
                run: "@actions/ask"
                transitions: {access: race, failure: flo.Failed}
              race:
                parallel:
                  join: first
                  branches: {x: {run: "@actions/x"}}
                transitions: {done: slip, failure: flo.Failed}
              slip:
                run: "@actions/ask"
                transitions: {Success: fan, failure: flo.Failed}
              fan:
                parallel:
                  branches: {y: {run: "@actions/y"}}
                transitions: {done: loop, failure: flo.Failed}
              loop:
                forEach: {items: $.input.all, do: {name: z, run: "@actions/z"}}
                transitions: {done: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            warning[E502]: outcome `success` of step "slip" has no transition: the run fails there
              --> w.yaml:19:3
               |
            19 |   slip:
               |   ^^^^
               = hint: add a transition for `success`

            warning[E502]: outcome `success` of step "fan" has no transition: the run fails there
              --> w.yaml:22:3
               |
            22 |   fan:
               |   ^^^
               = hint: add a transition for `success`

            warning[E502]: outcome `success` of step "loop" has no transition: the run fails there
              --> w.yaml:26:3
               |
            26 |   loop:
               |   ^^^^
               = hint: add a transition for `success`

            warning[E502]: the transition `done` of step "loop" is never taken, since the step iterates over items
              --> w.yaml:28:19
               |
            28 |     transitions: {done: flo.Completed, failure: flo.Failed}
               |                   ^^^^
        "#]],
    );
}

#[test]
fn a_path_within_a_text_is_shown_without_its_punctuation() {
    check_body(
        r#"
            steps:
              - {name: a, run: "@actions/a", inputMapping: {x: "order $.input.id, please", y: "(see $.input.id)", z: "price$"}}
        "#,
        expect![[r#"
            warning[E525]: "order $.input.id, please" is a literal
             --> w.yaml:5:52
              |
            5 |   - {name: a, run: "@actions/a", inputMapping: {x: "order $.input.id, please", y: "(see $.input.id)", z: "price$"}}
              |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
              = hint: a path is the whole string: join texts with `{cel: …}`, in which $.input.id is written without `$.`

            warning[E525]: "(see $.input.id)" is a literal
             --> w.yaml:5:83
              |
            5 |   - {name: a, run: "@actions/a", inputMapping: {x: "order $.input.id, please", y: "(see $.input.id)", z: "price$"}}
              |                                                                                   ^^^^^^^^^^^^^^^^^^
              = hint: a path is the whole string: join texts with `{cel: …}`, in which $.input.id is written without `$.`
        "#]],
    );
}

#[test]
fn a_handler_as_a_target_and_a_step_named_like_a_branch() {
    check_body(
        r#"
            start:
              run: "@actions/a"
              transitions: {success: fan, failure: onError}
            steps:
              fan:
                parallel:
                  branches:
                    x:
                      - {name: x, run: "@actions/b"}
                      - {name: y, run: "@actions/b"}
                transitions: {success: flo.Completed, failure: flo.Failed}
            onError: {run: "@actions/c"}
        "#,
        expect![[r#"
            error[E201]: expected start.transitions.failure to lead to a step or terminal, but there is no "onError"
             --> w.yaml:6:40
              |
            6 |   transitions: {success: fan, failure: onError}
              |                                        ^^^^^^^
              = hint: `onError` is executed before a run ends failed: use `flo.Failed`

            error[E105]: duplicate step "x"
              --> w.yaml:12:20
               |
            12 |           - {name: x, run: "@actions/b"}
               |                    ^
               = hint: a branch at line 11 has this name: branches and steps share one set of names
        "#]],
    );
}

#[test]
fn a_misspelt_root_is_compared_with_those_that_are_available_there() {
    check_body(
        r#"
            steps:
              - name: each
                forEach:
                  items: $.input.list
                  do:
                    run: "@actions/a"
                    inputMapping: {d: $.itm}
                    set: {z: $.resul.y}
                    fallback: {run: "@actions/b", inputMapping: {e: $.eror}}
        "#,
        expect![[r#"
            error[E508]: invalid path "$.itm": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta`, `$.flo`, `$.item` or `$.index`
              --> w.yaml:10:27
               |
            10 |         inputMapping: {d: $.itm}
               |                           ^^^^^
               = hint: did you mean "item"?

            error[E508]: invalid path "$.resul.y": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta`, `$.flo`, `$.result`, `$.item` or `$.index`
              --> w.yaml:11:18
               |
            11 |         set: {z: $.resul.y}
               |                  ^^^^^^^^^
               = hint: did you mean "result"?

            error[E508]: invalid path "$.eror": expected it to begin with `$.input`, `$.state`, `$.steps`, `$.meta`, `$.flo`, `$.error`, `$.item` or `$.index`
              --> w.yaml:12:57
               |
            12 |         fallback: {run: "@actions/b", inputMapping: {e: $.eror}}
               |                                                         ^^^^^^
               = hint: did you mean "error"?
        "#]],
    );
}

#[test]
fn texts_that_look_like_paths_are_found_wherever_their_root_is_available() {
    check_body(
        r#"
            steps:
              - name: each
                forEach:
                  items: $.input.list
                  do:
                    run: "@actions/a"
                    inputMapping: {a: "{{item}}", c: "no $.item"}
                    set: {x: "$result.a"}
                    compensate: {run: "@actions/undo", inputMapping: {o: "refund $.output.id"}}
            onError:
              - {name: tell, run: "@actions/c", inputMapping: {g: "${error}", h: "$home"}}
        "#,
        expect![[r#"
            warning[E525]: "{{item}}" is a literal
              --> w.yaml:10:27
               |
            10 |         inputMapping: {a: "{{item}}", c: "no $.item"}
               |                           ^^^^^^^^^^
               = hint: a path begins with `$.`: $.item

            warning[E525]: "no $.item" is a literal
              --> w.yaml:10:42
               |
            10 |         inputMapping: {a: "{{item}}", c: "no $.item"}
               |                                          ^^^^^^^^^^^
               = hint: a path is the whole string: join texts with `{cel: …}`, in which $.item is written without `$.`

            warning[E525]: "$result.a" is a literal
              --> w.yaml:11:18
               |
            11 |         set: {x: "$result.a"}
               |                  ^^^^^^^^^^^
               = hint: a path begins with `$.`: $.result.a

            warning[E525]: "refund $.output.id" is a literal
              --> w.yaml:12:62
               |
            12 |         compensate: {run: "@actions/undo", inputMapping: {o: "refund $.output.id"}}
               |                                                              ^^^^^^^^^^^^^^^^^^^^
               = hint: a path is the whole string: join texts with `{cel: …}`, in which $.output.id is written without `$.`

            warning[E525]: "${error}" is a literal
              --> w.yaml:14:55
               |
            14 |   - {name: tell, run: "@actions/c", inputMapping: {g: "${error}", h: "$home"}}
               |                                                       ^^^^^^^^^^
               = hint: a path begins with `$.`: $.error
        "#]],
    );
}

#[test]
fn a_handler_as_a_target_in_a_block() {
    check_body(
        r#"
            start:
              block:
                start: {run: "@actions/a", transitions: {success: flo.Completed, failure: onError}}
              transitions: {success: flo.Completed, failure: flo.Failed}
            onError:
              start:
                block:
                  start: {run: "@actions/c", transitions: {success: flo.Completed, failure: onCancel}}
                transitions: {success: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            error[E201]: expected start.block.start.transitions.failure to lead to a step or terminal, but there is no "onError"
             --> w.yaml:6:79
              |
            6 |     start: {run: "@actions/a", transitions: {success: flo.Completed, failure: onError}}
              |                                                                               ^^^^^^^
              = hint: `onError` is executed before a run ends failed: use a custom terminal, since `flo.Failed` ends only the block

            error[E201]: expected onError.start.block.start.transitions.failure to lead to a step or terminal, but there is no "onCancel"
              --> w.yaml:11:81
               |
            11 |       start: {run: "@actions/c", transitions: {success: flo.Completed, failure: onCancel}}
               |                                                                                 ^^^^^^^^
               = hint: `onCancel` is executed before a run ends cancelled: use `flo.Cancelled`
        "#]],
    );
}

#[test]
fn a_run_step_that_is_not_led_on() {
    check_body(
        r#"
            start:
              run: "@actions/a"
              transitions: {succes: b, failure: flo.Failed}
            steps:
              b:
                run: "@actions/b"
                transitions: {failure: c, timeout: c}
              c:
                run: "@actions/c"
                transitions: {shipped: flo.Completed, failure: flo.Failed}
        "#,
        expect![[r#"
            warning[E502]: outcome `success` of step "start" has no transition: the run fails there
             --> w.yaml:4:1
              |
            4 | start:
              | ^^^^^
              = hint: add a transition for `success`

            warning[E502]: outcome `success` of step "b" has no transition: the run fails there
             --> w.yaml:8:3
              |
            8 |   b:
              |   ^
              = hint: add a transition for `success`
        "#]],
    );
}
