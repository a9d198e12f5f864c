//! Definitions that every server must refuse.

use super::parked::Parked;
use crate::files::fixture;
use flotilla_tests::Flo;
use serde_json::Value;

/// Validates and creates the file, expects both to be refused, and returns the findings.
fn expect_refused(parked: &Parked, file: &str) -> Vec<Value> {
    let offline = Flo::at("127.0.0.1:1");
    let validated = offline.run(&["-o", "json", "workflow", "validate", "-f", file]);
    let report: Value = serde_json::from_str(&validated.stdout).expect("a report in JSON");
    validated.refusal().expect(3, "definition_invalid");
    assert_eq!(report["valid"], false);
    let created = parked.flo().refused(&["workflow", "create", "-f", file]);
    assert!([2, 3].contains(&created.exit), "{created:?}");
    report["findings"].as_array().expect("findings").clone()
}

fn expect_not_stored(parked: &Parked, name: &str) {
    let show = parked.flo().refused(&["workflow", "show", name]);
    show.expect(1, "workflow_not_found");
}

#[test]
fn a_yaml_bomb_is_refused_with_its_place() {
    let parked = Parked::start();
    let findings = expect_refused(&parked, &fixture("bomb.yaml"));
    assert_eq!(findings[0]["code"], "E100", "{findings:?}");
    assert!(findings[0]["line"].as_u64() > Some(0), "{findings:?}");
    expect_not_stored(&parked, "bomb");
    parked.expect_nothing_lost();
}

#[test]
fn a_definition_of_two_mebibytes_is_refused_with_the_limit() {
    let parked = Parked::start();
    let text = format!(
        "kind: Workflow\nname: large\nversion: \"1\"\ndescription: \"{}\"\n",
        "x".repeat(2 << 20)
    );
    let file = parked.scratch().write("large.yaml", text);
    let findings = expect_refused(&parked, &file);
    let message = findings[0]["message"].as_str().expect("a message");
    assert!(
        message.contains("1048576") || message.contains("1 MiB"),
        "{message}"
    );
    expect_not_stored(&parked, "large");
    parked.expect_nothing_lost();
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let parked = Parked::start();
    let text = "kind: Workflow\nname: typo\nversion: \"1\"\nstart:\n  run: \"@actions/a\"\n  \
                transition:\n    success: flo.Completed\n";
    let file = parked.scratch().write("typo.yaml", text);
    let findings = expect_refused(&parked, &file);
    let finding = &findings[0];
    assert_eq!(finding["message"], r#"unknown key "transition" at start"#);
    assert_eq!(
        (&finding["line"], &finding["column"]),
        (&6.into(), &3.into())
    );
    let hint = finding["hint"].as_str().expect("a hint");
    assert!(hint.contains("transitions"), "{hint}");
    expect_not_stored(&parked, "typo");
    parked.expect_nothing_lost();
}

#[test]
fn a_schedule_that_can_never_fire_is_refused_with_its_place() {
    let parked = Parked::start();
    for (schedule, column, said) in [
        ("{cron: \"0 0 * *\"}", 18, "5 fields"),
        ("{cron: \"0 0 30 2 *\"}", 18, "would never fire"),
        (
            "{cron: \"0 0 * * *\", timezone: Europe/Berln}",
            41,
            "no time zone \"Europe/Berln\"",
        ),
    ] {
        let text = format!(
            "kind: Workflow\nname: never\nversion: \"1\"\nschedule: {schedule}\nstart:\n  \
             run: \"@actions/a\"\n  transitions: {{success: flo.Completed, failure: flo.Failed}}\n"
        );
        let file = parked.scratch().write("never.yaml", text);
        let finding = &expect_refused(&parked, &file)[0];
        assert_eq!(finding["code"], "E506", "{finding}");
        let place = (&finding["line"], &finding["column"]);
        assert_eq!(place, (&4.into(), &column.into()), "{finding}");
        let message = finding["message"].as_str().expect("a message");
        assert!(message.contains(said), "{message}");
    }
    expect_not_stored(&parked, "never");
    parked.expect_nothing_lost();
}
