//! Paths (W15), and the values that they select. The first line is a path, the rest a JSON text.

use crate::target::{Target, Verdict};
use flotilla_dsl::parse;
use flotilla_engine::definition::{Definition, Part, Path, Root, Segment, StepKind};
use flotilla_engine::json;
use serde_json::Value;
use std::fmt::Write as _;

pub(super) const TARGET: Target = Target {
    name: "path",
    summary: "paths: parsed, printed and parsed again the same; they find what another decoder finds",
    tokens: &[
        "$.",
        "input",
        "steps.",
        "start",
        "_start",
        "charge",
        ".output",
        ".outcome",
        "flo.run_id",
        "flo.timestamp",
        "[0]",
        "[4294967295]",
        ".a",
        "\n",
        "{\"a\":",
        "[",
        "]",
        "}",
        ",",
        "\"a\"",
        "\\u0061",
        "\\ud834\\udd1e",
        "\\\"",
        "\\\\",
        " ",
        "\t",
        "é",
        "null",
        "-1.5e3",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let (written, payload) = text.split_once('\n').unwrap_or((text, ""));
    let Some(path) = read(written) else {
        return Verdict::Refused;
    };
    let printed = print(&path);
    assert_eq!(read(&printed), Some(path.clone()), "printed as {printed:?}");
    check_value(&path.segments, payload);
    Verdict::Accepted
}

/// The path, as in a mapping of a definition; `None` for a text that is not a path.
fn read(written: &str) -> Option<Path> {
    let mapping = Value::from(written);
    let text = format!(
        r#"{{"kind": "Workflow", "name": "w", "version": "1",
            "start": {{"run": "@actions/a", "inputMapping": {{"at": {mapping}}},
                "transitions": {{"success": "charge", "failure": "flo.Failed"}}}},
            "steps": {{"charge": {{"run": "@actions/a",
                "transitions": {{"success": "flo.Completed", "failure": "flo.Failed"}}}}}}}}"#
    );
    let definition = parse(&text).definition?;
    let mut parts = mapping_of(&definition).into_iter();
    parts.find_map(|part| match part {
        Part::Path(path) => Some(path),
        Part::Literal(_) | Part::Expression(_) => None,
    })
}

fn mapping_of(definition: &Definition) -> Vec<Part> {
    let StepKind::Run(run) = &definition.steps[0].kind else {
        unreachable!("the start step runs an action");
    };
    let template = run.call.input.clone();
    template.expect("the start step has a mapping").parts
}

fn print(path: &Path) -> String {
    let mut text = match path.root {
        Root::Input => "$.input".to_owned(),
        Root::StepOutput(step) => format!("$.steps.{}.output", step_name(step.position())),
        Root::StepOutcome(step) => format!("$.steps.{}.outcome", step_name(step.position())),
        Root::RunId => "$.flo.run_id".to_owned(),
        Root::Timestamp => "$.flo.timestamp".to_owned(),
        Root::Run(fact) => format!("$.flo.{}", fact.name()),
        Root::State => "$.state".to_owned(),
        Root::Meta => "$.meta".to_owned(),
        Root::Result => "$.result".to_owned(),
        Root::Error => "$.error".to_owned(),
        Root::Item(_) | Root::ItemIndex(_) => unreachable!("the step is in no loop"),
        Root::EndCause => unreachable!("the step is in no handler"),
    };
    for segment in &path.segments {
        match segment {
            Segment::Field(name) => write!(text, ".{name}"),
            Segment::Index(index) => write!(text, "[{index}]"),
        }
        .expect("a String takes every text");
    }
    text
}

fn step_name(position: usize) -> &'static str {
    ["start", "charge"][position]
}

/// The slice that the engine finds is the value that a JSON decoder finds.
fn check_value(segments: &[Segment], payload: &str) {
    let Ok(whole) = serde_json::from_str::<Value>(payload) else {
        return;
    };
    let wanted = segments
        .iter()
        .try_fold(&whole, |value, segment| match segment {
            Segment::Field(name) => value.as_object()?.get(name),
            Segment::Index(index) => value.as_array()?.get(usize::try_from(*index).ok()?),
        });
    let found = json::find(payload, segments)
        .map(|slice| serde_json::from_str(slice).expect("a value within JSON is JSON"));
    assert_eq!(found.as_ref(), wanted, "{segments:?} in {payload}");
    if let Some(Value::String(text)) = wanted {
        let slice = json::find(payload, segments).expect("just found");
        assert_eq!(json::as_string(slice).as_ref(), Some(text));
        assert_eq!(
            json::as_string(json::Json::string(text).as_str()).as_ref(),
            Some(text)
        );
    }
}
