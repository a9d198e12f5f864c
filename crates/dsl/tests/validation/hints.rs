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
