//! Lists of triggers and their conditions (W93).

use crate::{accept_block, check_block};
use expect_test::expect;
use flotilla_engine::definition::Variable;

#[test]
fn a_list_of_triggers_reaches_the_definition_in_its_order() {
    let triggers = accept_block(
        r#"
        triggers:
          - {kind: stream, stream: orders, when: "record.payload.total > 100 && record.key == 'k'"}
          - {stream: orders, consumer_group: audit, batch_size: 20}
          - {stream: orders, namespace: other}
        "#,
    )
    .triggers;
    let groups: Vec<&str> = triggers
        .iter()
        .map(|one| one.consumer_group.as_str())
        .collect();
    assert_eq!(groups, ["wf-w", "audit", "wf-w"]);
    let when = triggers[0].when.as_ref().expect("a condition");
    assert_eq!(when.variables, [Variable::Record]);
    assert_eq!(triggers[1].when, None);
}

#[test]
fn a_trigger_is_a_list_of_one_stream() {
    let of_block =
        accept_block("trigger: {kind: stream, stream: orders, when: 'record.key != null'}\n");
    let of_list = accept_block("triggers: [{stream: orders, when: 'record.key != null'}]\n");
    assert_eq!(of_block.triggers, of_list.triggers);
    assert!(accept_block("triggers: []\n").triggers.is_empty());
}

#[test]
fn two_triggers_of_a_stream_need_two_groups() {
    check_block(
        "triggers: [{stream: orders}, {stream: orders, batch_size: 2}]\n",
        expect![[r#"
            error[E100]: triggers[1] is a second trigger of stream "orders" in consumer group "wf-w"
             --> w.yaml:4:30
              |
            4 | triggers: [{stream: orders}, {stream: orders, batch_size: 2}]
              |                              ^
              = hint: name another `consumer_group`
        "#]],
    );
    check_block(
        "namespace: shop\ntriggers: [{stream: orders}, {stream: orders, namespace: shop}]\n",
        expect![[r#"
            error[E100]: triggers[1] is a second trigger of stream "orders" in consumer group "wf-w"
             --> w.yaml:5:30
              |
            5 | triggers: [{stream: orders}, {stream: orders, namespace: shop}]
              |                              ^
              = hint: name another `consumer_group`
        "#]],
    );
}

#[test]
fn a_list_has_at_most_16_triggers_and_no_trigger_beside_it() {
    let triggers = |count: usize| {
        let triggers = (0..count).map(|number| format!("{{stream: s{number}}}"));
        format!("triggers: [{}]\n", triggers.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(accept_block(&triggers(16)).triggers.len(), 16);
    check_block(
        &triggers(17),
        expect![[r#"
        error[E100]: expected at most 16 items in triggers, but it has 17
         --> w.yaml:4:11
          |
        4 | triggers: [{stream: s0}, {stream: s1}, {stream: s2}, {stream: s3}, {stream: s4}, {stream: s5}, {stream: s6}, {stream: s7…
          |           ^
    "#]],
    );
    check_block(
        "trigger: {stream: orders}\ntriggers: [{stream: returns}]\n",
        expect![[r#"
            error[E100]: expected either `trigger` or `triggers`, but found both
             --> w.yaml:5:1
              |
            5 | triggers: [{stream: returns}]
              | ^^^^^^^^
              = hint: move the trigger into the list
        "#]],
    );
}

#[test]
fn a_trigger_is_of_a_stream() {
    check_block(
        "triggers: [{kind: webhook, path: orders}]\n",
        expect![[r#"
            error[E100]: expected triggers[0].kind to be "stream", but webhooks cannot start runs yet
             --> w.yaml:4:19
              |
            4 | triggers: [{kind: webhook, path: orders}]
              |                   ^^^^^^^
        "#]],
    );
    check_block(
        "triggers: [{kind: strem, stream: s}]\n",
        expect![[r#"
        error[E100]: expected triggers[0].kind to be one of `stream`, but it is the string "strem"
         --> w.yaml:4:19
          |
        4 | triggers: [{kind: strem, stream: s}]
          |                   ^^^^^
          = hint: did you mean "stream"?
    "#]],
    );
}

#[test]
fn a_condition_sees_the_record_alone() {
    check_block(
        "triggers: [{stream: s, when: 'input.total > 1'}]\n",
        expect![[r#"
            error[E513]: invalid expression at column 1 of "input.total > 1": there is no name "input"
             --> w.yaml:4:30
              |
            4 | triggers: [{stream: s, when: 'input.total > 1'}]
              |                              ^^^^^^^^^^^^^^^^^
        "#]],
    );
    check_block(
        "triggers: [{stream: s, when: 'recrd.payload.total > 1'}]\n",
        expect![[r#"
            error[E513]: invalid expression at column 1 of "recrd.payload.total > 1": there is no name "recrd"
             --> w.yaml:4:30
              |
            4 | triggers: [{stream: s, when: 'recrd.payload.total > 1'}]
              |                              ^^^^^^^^^^^^^^^^^^^^^^^^^
              = hint: did you mean `record`?
        "#]],
    );
    check_block(
        "triggers: [{stream: s, when: 'record.payload.total >'}]\n",
        expect![[r#"
            error[E517]: invalid expression at column 23 of "record.payload.total >": the expression is incomplete
             --> w.yaml:4:30
              |
            4 | triggers: [{stream: s, when: 'record.payload.total >'}]
              |                              ^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check_block(
        "output: {a: {cel: record.payload}}\n",
        expect![[r#"
        error[E513]: invalid expression at column 1 of "record.payload": there is no name "record"
         --> w.yaml:4:19
          |
        4 | output: {a: {cel: record.payload}}
          |                   ^^^^^^^^^^^^^^
    "#]],
    );
}
