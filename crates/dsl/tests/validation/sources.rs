//! E504, E506, E524 and the blocks that start or find runs: schedule, trigger, search attributes (W3).

use crate::{accept_block, check_block};
use expect_test::expect;
use flotilla_engine::definition::{
    AttributeKind, GroupMode, Path, Root, Schedule, Segment, StepIndex, Timing,
};

#[test]
fn e504_a_schedule_with_neither_or_both() {
    check_block(
        "schedule: {paused: true}\n",
        expect![[r#"
        error[E504]: expected schedule to have either `cron` or `interval`, but it has neither
         --> w.yaml:4:1
          |
        4 | schedule: {paused: true}
          | ^^^^^^^^
    "#]],
    );
    check_block(
        "schedule: {cron: \"0 0 * * *\", interval: 5}\n",
        expect![[r#"
            error[E504]: expected schedule to have either `cron` or `interval`, but it has both
             --> w.yaml:4:1
              |
            4 | schedule: {cron: "0 0 * * *", interval: 5}
              | ^^^^^^^^
        "#]],
    );
}

#[test]
fn e504_an_interval_that_is_not_above_0() {
    check_block(
        "schedule: {interval: 0}\n",
        expect![[r#"
            error[E504]: expected schedule.interval to be from 1 to 316224000000, but it is the number 0
             --> w.yaml:4:22
              |
            4 | schedule: {interval: 0}
              |                      ^
        "#]],
    );
    check_block(
        "schedule: {interval: -30000}\n",
        expect![[r#"
            error[E504]: expected schedule.interval to be from 1 to 316224000000, but it is the number -30000
             --> w.yaml:4:22
              |
            4 | schedule: {interval: -30000}
              |                      ^^^^^^
        "#]],
    );
}

#[test]
fn e524_a_time_zone_beside_an_interval() {
    check_block(
        "schedule: {interval: 60000, timezone: Europe/Berlin}\n",
        expect![[r#"
            warning[E524]: schedule.timezone has no effect beside `interval`
             --> w.yaml:4:29
              |
            4 | schedule: {interval: 60000, timezone: Europe/Berlin}
              |                             ^^^^^^^^
              = hint: leave it out: a time zone is for `cron`
        "#]],
    );
}

#[test]
fn e524_a_mode_of_a_trigger() {
    check_block(
        "trigger: {stream: orders, mode: exclusive}\n",
        expect![[r#"
            warning[E524]: trigger.mode has no effect on a trigger, which is the only consumer of its group
             --> w.yaml:4:27
              |
            4 | trigger: {stream: orders, mode: exclusive}
              |                           ^^^^
              = hint: leave it out: the runs of a partition start in the order of its records in every mode
        "#]],
    );
    check_block(
        "trigger: {stream: orders, mode: key_shared}\n",
        expect![[r#"
            warning[E524]: trigger.mode has no effect on a trigger, which is the only consumer of its group
             --> w.yaml:4:27
              |
            4 | trigger: {stream: orders, mode: key_shared}
              |                           ^^^^
              = hint: leave it out: the runs of a partition start in the order of its records in every mode
        "#]],
    );
}

#[test]
fn e506_bad_cron() {
    check_block(
        "schedule: {cron: \"@daily\"}\n",
        expect![[r#"
        error[E506]: invalid cron: expected 5 fields, but found 1
         --> w.yaml:4:18
          |
        4 | schedule: {cron: "@daily"}
          |                  ^^^^^^^^
          = hint: five fields of numbers: minute hour day-of-month month day-of-week; names such as MON and macros such as @daily are not supported
    "#]],
    );
    check_block(
        "schedule: {cron: \"0 9 * * MON-FRI\"}\n",
        expect![[r#"
        error[E506]: invalid cron: expected numbers with `*`, `,`, `-` and `/`, but found "MON-FRI"
         --> w.yaml:4:18
          |
        4 | schedule: {cron: "0 9 * * MON-FRI"}
          |                  ^^^^^^^^^^^^^^^^^
          = hint: five fields of numbers: minute hour day-of-month month day-of-week; names such as MON and macros such as @daily are not supported
    "#]],
    );
    check_block(
        "schedule: {cron: \"0 0 30 2 *\"}\n",
        expect![[r#"
            error[E506]: invalid cron: expected a date that exists in some year, but none matches: it would never fire
             --> w.yaml:4:18
              |
            4 | schedule: {cron: "0 0 30 2 *"}
              |                  ^^^^^^^^^^^^
              = hint: none of these months has such a day: 30 February, for example, does not exist
        "#]],
    );
    check_block(
        "schedule: {cron: \"61 0 * * *\"}\n",
        expect![[r#"
        error[E506]: invalid cron: expected the minute to be from 0 to 59, but it is 61
         --> w.yaml:4:18
          |
        4 | schedule: {cron: "61 0 * * *"}
          |                  ^^^^^^^^^^^^
          = hint: five fields: minute hour day-of-month month day-of-week
    "#]],
    );
    check_block(
        "schedule: {cron: \"0 0 * * *\", timezone: Europe/Berln}\n",
        expect![[r#"
            error[E506]: invalid cron: there is no time zone "Europe/Berln"
             --> w.yaml:4:41
              |
            4 | schedule: {cron: "0 0 * * *", timezone: Europe/Berln}
              |                                         ^^^^^^^^^^^^
              = hint: use an IANA name such as `Europe/Berlin`
        "#]],
    );
}

#[test]
fn e100_an_input_of_scheduled_runs_that_breaks_the_schema() {
    let schema = "input: {type: object, required: [mode], properties: {mode: {type: string}}}\n";
    check_block(
        &format!("{schema}schedule: {{interval: 5, input: {{mode: 7}}}}\n"),
        expect![[r#"
            error[E100]: expected the input of scheduled runs to satisfy the workflow's `input` schema, but the value is not of type "string"
             --> w.yaml:5:39
              |
            5 | schedule: {interval: 5, input: {mode: 7}}
              |                                       ^
        "#]],
    );
    check_block(
        &format!("{schema}schedule: {{interval: 5}}\n"),
        expect![[r#"
            error[E100]: expected the input of scheduled runs to satisfy the workflow's `input` schema, but "mode" is a required property
             --> w.yaml:5:11
              |
            5 | schedule: {interval: 5}
              |           ^
        "#]],
    );
    accept_block(&format!(
        "{schema}schedule: {{interval: 5, input: '{{\"mode\":\"full\"}}'}}\n"
    ));
}

#[test]
fn e100_a_trigger_without_a_stream() {
    check_block(
        "trigger: {mode: exclusiv, batch_size: 0}\n",
        expect![[r#"
        error[E100]: expected trigger to have `stream`, but it is missing
         --> w.yaml:4:1
          |
        4 | trigger: {mode: exclusiv, batch_size: 0}
          | ^^^^^^^

        error[E100]: expected trigger.mode to be one of `shared`, `exclusive`, `key_shared`, but it is the string "exclusiv"
         --> w.yaml:4:17
          |
        4 | trigger: {mode: exclusiv, batch_size: 0}
          |                 ^^^^^^^^
          = hint: did you mean "exclusive"?

        error[E100]: expected trigger.batch_size to be from 1 to 1000, but it is the number 0
         --> w.yaml:4:39
          |
        4 | trigger: {mode: exclusiv, batch_size: 0}
          |                                       ^
    "#]],
    );
}

#[test]
fn e100_a_batch_of_more_records_than_one_read_gives() {
    accept_block("trigger: {stream: orders, batch_size: 1000}\n");
    check_block(
        "trigger: {stream: orders, batch_size: 1001}\n",
        expect![[r#"
        error[E100]: expected trigger.batch_size to be from 1 to 1000, but it is the number 1001
         --> w.yaml:4:39
          |
        4 | trigger: {stream: orders, batch_size: 1001}
          |                                       ^^^^
    "#]],
    );
}

#[test]
fn e100_search_attributes_that_repeat_or_lack_something() {
    check_block(
        r#"
        searchAttributes:
          - {name: a, from: input.a}
          - {name: a, from: input.a}
          - {name: b.c, from: input.a}
          - {type: text}
        "#,
        expect![[r#"
            error[E100]: duplicate search attribute "a"
             --> w.yaml:6:12
              |
            6 |   - {name: a, from: input.a}
              |            ^

            error[E100]: expected a search attribute name to be a letter or `_`, then letters, digits, `_` or `-`, at most 256 bytes, but it is "b.c"
             --> w.yaml:7:12
              |
            7 |   - {name: b.c, from: input.a}
              |            ^^^

            error[E100]: expected searchAttributes[3] to have `name`, but it is missing
             --> w.yaml:8:5
              |
            8 |   - {type: text}
              |     ^

            error[E100]: expected searchAttributes[3] to have `from`, but it is missing
             --> w.yaml:8:5
              |
            8 |   - {type: text}
              |     ^

            error[E100]: expected searchAttributes[3].type to be one of `string`, `number`, `timestamp`, but it is the string "text"
             --> w.yaml:8:12
              |
            8 |   - {type: text}
              |            ^^^^
        "#]],
    );
}

#[test]
fn a_schedule_has_the_defaults_of_w3() {
    let schedule = |timing| Schedule {
        timing,
        max_concurrent: 1,
        input: "{}".to_owned(),
        paused: false,
        catchup_window_ms: 0,
    };
    let interval = schedule(Timing::Interval { every_ms: 30_000 });
    assert_eq!(
        accept_block("schedule: {interval: 30000}\n").schedule,
        Some(interval)
    );
    let cron = Timing::Cron {
        expression: "0 */6 * * *".to_owned(),
        timezone: "UTC".to_owned(),
    };
    assert_eq!(
        accept_block("schedule: {cron: \"0 */6 * * *\"}\n").schedule,
        Some(schedule(cron))
    );
}

#[test]
fn a_trigger_has_the_defaults_of_w3() {
    let trigger = accept_block("trigger: {stream: orders}\n")
        .triggers
        .remove(0);
    assert_eq!(trigger.consumer_group.as_str(), "wf-w");
    assert_eq!(
        (
            trigger.consumption,
            trigger.batch_size,
            trigger.batch_timeout_ms
        ),
        (GroupMode::Shared, 1, 5_000)
    );
    assert_eq!(trigger.namespace, None);
}

#[test]
fn search_attributes_have_either_source_key_with_or_without_the_dollar() {
    let attributes = accept_block(
        r#"
        searchAttributes:
          - {name: a, from: input.customer.id}
          - {name: b, type: number, path: $.steps.start.output}
        "#,
    )
    .search_attributes;
    assert_eq!(attributes[0].kind, AttributeKind::String);
    let segments = ["customer", "id"].map(|name| Segment::Field(name.to_owned()));
    assert_eq!(
        attributes[0].from,
        Path {
            root: Root::Input,
            segments: segments.to_vec()
        }
    );
    assert_eq!(
        attributes[1].from,
        Path {
            root: Root::StepOutput(StepIndex::START),
            segments: Vec::new()
        }
    );
}

#[test]
fn a_schedule_with_everything_reaches_the_definition() {
    let schedule = accept_block(
        "schedule: {cron: \"30 2 * * 0\", timezone: Europe/Berlin, max_concurrent: 4, input: '{\"mode\": \"full\"}', paused: true, catchup_window_ms: 60000}\n",
    )
    .schedule;
    let expected = Schedule {
        timing: Timing::Cron {
            expression: "30 2 * * 0".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
        },
        max_concurrent: 4,
        input: "{\"mode\":\"full\"}".to_owned(),
        paused: true,
        catchup_window_ms: 60_000,
    };
    assert_eq!(schedule, Some(expected));
}

#[test]
fn a_trigger_with_everything_reaches_the_definition() {
    for (word, consumption) in [
        ("shared", GroupMode::Shared),
        ("exclusive", GroupMode::Exclusive),
        ("key_shared", GroupMode::KeyShared),
    ] {
        let trigger = accept_block(&format!(
            "trigger: {{stream: orders, namespace: prod, consumer_group: billing, mode: {word}, batch_size: 20, batch_timeout_ms: 700}}\n"
        ))
        .triggers
        .remove(0);
        let namespace = trigger.namespace.as_ref().map(|name| name.as_str());
        assert_eq!(
            (
                trigger.stream.as_str(),
                namespace,
                trigger.consumer_group.as_str()
            ),
            ("orders", Some("prod"), "billing")
        );
        assert_eq!(
            (
                trigger.consumption,
                trigger.batch_size,
                trigger.batch_timeout_ms
            ),
            (consumption, 20, 700)
        );
    }
}

#[test]
fn a_search_attribute_is_a_text_a_number_or_a_time() {
    let attributes = accept_block(
        r#"
        searchAttributes:
          - {name: customer_id, type: string, from: input.customer_id}
          - {name: order_amount, type: number, from: input.amount}
          - {name: created_at, type: timestamp, from: input.timestamp}
        "#,
    )
    .search_attributes;
    let kinds: Vec<AttributeKind> = attributes.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [
            AttributeKind::String,
            AttributeKind::Number,
            AttributeKind::Timestamp
        ]
    );
}

#[test]
fn e523_a_step_that_emits_to_the_stream_of_its_own_trigger() {
    let check = |namespace: &str, trigger: &str, expected| {
        crate::check_body(
            &format!(
                "\n{namespace}trigger: {{stream: orders{trigger}}}\nsteps:\n  - {{name: tell, emit: {{stream: orders, payload: $.input}}}}\n  - {{name: other, emit: {{stream: others, payload: 1}}}}\n"
            ),
            expected,
        );
    };
    check(
        "",
        "",
        expect![[r#"
            warning[E523]: each record that this step appends to "orders" starts another run
             --> w.yaml:6:33
              |
            6 |   - {name: tell, emit: {stream: orders, payload: $.input}}
              |                                 ^^^^^^
              = hint: append to another stream; the trigger refuses records with more than 16 hops
        "#]],
    );
    check(
        "namespace: shop\n",
        ", namespace: shop",
        expect![[r#"
            warning[E523]: each record that this step appends to "orders" starts another run
             --> w.yaml:7:33
              |
            7 |   - {name: tell, emit: {stream: orders, payload: $.input}}
              |                                 ^^^^^^
              = hint: append to another stream; the trigger refuses records with more than 16 hops
        "#]],
    );
    check("", ", namespace: shop", expect![""]);
}
