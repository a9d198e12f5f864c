//! Targets, waits and mappings in the parsed definition.

use crate::accept_body;
use flotilla_engine::definition::{
    BuiltInTerminal, Part, Path, PlanIndex, RunTarget, Segment, SignalTypeValue, Step, StepIndex,
    StepKind, Target, Template, TerminalIndex,
};
use flotilla_engine::ids::SignalType;

fn steps(body: &str) -> Vec<Step> {
    accept_body(body).steps
}

/// The start step's mapping, paths shown as `<…>`.
fn mapping(value: &str) -> String {
    let steps = steps(&format!(
        "start:\n  run: \"@actions/a\"\n  inputMapping: {value}\n  transitions: {{success: b, failure: flo.Failed}}\nsteps:\n  b: {{run: \"@actions/b\", transitions: {{success: flo.Completed, failure: flo.Failed}}}}\n"
    ));
    let step = steps[0].run().expect("a run step");
    step.call.input.as_ref().map(shown).unwrap_or_default()
}

fn shown(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.clone(),
        Part::Expression(expression) => format!("<{}>", expression.text),
        Part::Path(Path { root, segments }) => {
            let segment = |segment: &Segment| match segment {
                Segment::Field(name) => format!(".{name}"),
                Segment::Index(index) => format!("[{index}]"),
            };
            format!(
                "<{root:?}{}>",
                segments.iter().map(segment).collect::<String>()
            )
        }
    };
    template.parts.iter().map(part).collect()
}

#[test]
fn a_mapping_is_the_same_as_json_text_and_as_yaml() {
    let expected = r#"{"a":<Input.x>,"b":[1.50,<StepOutput(StepIndex(1)).y[0]>,"plain"]}"#;
    assert_eq!(
        mapping(r#"'{"a": "$.input.x", "b": [1.50, "$.steps.b.output.y[0]", "plain"]}'"#),
        expected
    );
    assert_eq!(
        mapping("{a: $.input.x, b: [1.50, \"$.steps.b.output.y[0]\", plain]}"),
        expected
    );
}

#[test]
fn both_names_of_the_start_step_are_read() {
    assert_eq!(
        mapping("{a: $.steps._start.outcome, b: $.steps.start.outcome}"),
        r#"{"a":<StepOutcome(StepIndex(0))>,"b":<StepOutcome(StepIndex(0))>}"#
    );
}

#[test]
fn a_mapping_may_be_one_path() {
    assert_eq!(mapping("$.input"), "<Input>");
    assert_eq!(mapping("\"$.input.order\""), "<Input.order>");
}

#[test]
fn run_id_and_time_have_paths() {
    assert_eq!(
        mapping("{a: $.flo.run_id, b: $.flo.timestamp}"),
        r#"{"a":<RunId>,"b":<Timestamp>}"#
    );
    assert_eq!(
        mapping("{a: $.flo.workflow, b: $.flo.run_attempt}"),
        r#"{"a":<Run(Workflow)>,"b":<Run(RunAttempt)>}"#
    );
}

#[test]
fn numbers_in_mappings_keep_every_digit() {
    assert_eq!(
        mapping("{a: 123456789012345678901234567890, b: 0.10, c: 1e3}"),
        r#"{"a":123456789012345678901234567890,"b":0.10,"c":1e3}"#
    );
    assert_eq!(
        mapping("'[18446744073709551616, -0.0]'"),
        "[18446744073709551616,-0.0]"
    );
}

#[test]
fn strings_in_mappings_are_escaped() {
    assert_eq!(
        mapping(r#"{"quote\"": "line\nbreak $.input"}"#),
        r#"{"quote\"":"line\nbreak $.input"}"#
    );
}

#[test]
fn targets_are_resolved() {
    let steps = steps(
        r#"
        terminals:
          T: {status: cancelled}
        plans:
          q: {executors: [{name: e, run: "@actions/x"}]}
          p: {executors: [{name: e, run: "@actions/x"}]}
        start: {run: "@workflow/child.flow:2.0.0", transitions: {success: c, failure: flo.TimedOut}}
        steps:
          b: {run: "@plan/p", transitions: {success: start, failure: T}}
          c: {run: "@actions/pay.v2", transitions: {success: b, needs_review: b, failure: flo.Cancelled}}
        "#,
    );
    let run = |index: usize| {
        let step = steps[index].run().expect("a run step");
        step.call.target.clone()
    };
    assert!(
        matches!(run(0), RunTarget::Workflow { name, version: Some(version) } if name.as_str() == "child.flow" && version.as_str() == "2.0.0")
    );
    assert_eq!(run(1), RunTarget::Plan(PlanIndex(1)));
    assert!(matches!(run(2), RunTarget::Action(name) if name.as_str() == "pay.v2"));
    let targets = |index: usize| -> Vec<Target> {
        steps[index]
            .transitions
            .iter()
            .map(|line| line.target)
            .collect()
    };
    assert_eq!(
        targets(0),
        [
            Target::Step(StepIndex(2)),
            Target::BuiltIn(BuiltInTerminal::TimedOut)
        ]
    );
    assert_eq!(
        targets(1),
        [
            Target::Step(StepIndex::START),
            Target::Custom(TerminalIndex(0))
        ]
    );
    assert_eq!(steps[2].transitions[1].outcome.as_str(), "needs_review");
}

#[test]
fn a_wait_has_either_spelling() {
    let steps = steps(
        r#"
        start:
          wait_for_signal: {type: approval, timeout_ms: 5, on_timeout: flo.Failed}
          transitions: {success: flo.Completed}
        "#,
    );
    let StepKind::Wait(wait) = &steps[0].kind else {
        panic!("expected a wait step")
    };
    let approval = SignalType::new("approval").expect("a type");
    assert_eq!(
        (&wait.signal_type, wait.timeout_ms),
        (&SignalTypeValue::Fixed(approval), Some(5))
    );
    assert_eq!(
        wait.on_timeout,
        Some(Target::BuiltIn(BuiltInTerminal::Failed))
    );
}
