//! A workflow as a Mermaid flowchart.

use super::form::{BlockForm, BuiltIn, Form, Kind, RunTarget, Step, Target};
use crate::period;
use std::collections::BTreeSet;

/// The expiry of a wait, as the outcome of a transition.
const TIMEOUT: &str = "timeout";
/// The outcome that leads to the next step of a list without a transition.
const SUCCESS: &str = "success";

/// The text of the flowchart, with the start step at the top. Nodes have generated ids, because
/// names may be reserved words of Mermaid.
pub(super) fn draw(form: &Form) -> String {
    let mut text = format!("%% {} {}\nflowchart TD\n", form.name, form.version);
    for (position, step) in form.steps.iter().enumerate() {
        let node = id(Target::Step(position));
        text.push_str(&format!("    {node}{}\n", shape(form, step)));
    }
    let steps = form.steps.iter().enumerate();
    let arrows: Vec<Arrow> = steps.flat_map(|step| arrows(form, step)).collect();
    for (target, label) in terminals(form, &arrows) {
        text.push_str(&format!("    {}([{}])\n", id(target), quote(&label)));
    }
    for arrow in &arrows {
        text.push_str(&format!("    {}\n", arrow.text()));
    }
    text
}

/// A way out of a step.
struct Arrow {
    from: usize,
    /// The outcome; empty for the way to the next step of a list.
    label: String,
    to: Target,
    /// Whether it is followed on expiry.
    is_expiry: bool,
}

impl Arrow {
    fn text(&self) -> String {
        let line = if self.is_expiry { "-.->" } else { "-->" };
        let (from, to) = (id(Target::Step(self.from)), id(self.to));
        if self.label.is_empty() {
            return format!("{from} {line} {to}");
        }
        format!("{from} {line}|{}| {to}", quote(&self.label))
    }
}

/// A step's transitions, in a list the next step (W50a) and, for a wait with a timeout, where expiry leads (W19).
fn arrows(form: &Form, (from, step): (usize, &Step)) -> Vec<Arrow> {
    let mut arrows: Vec<Arrow> = step
        .transitions
        .iter()
        .map(|transition| Arrow {
            from,
            label: transition.outcome.clone(),
            to: transition.target,
            is_expiry: false,
        })
        .collect();
    let form = form.blocks.get(step.block).map(|block| block.form);
    let is_named = arrows.iter().any(|arrow| arrow.label == SUCCESS);
    if form == Some(BlockForm::List) && !is_named {
        let end = Target::BuiltIn(BuiltIn::Completed);
        arrows.push(Arrow {
            from,
            label: String::new(),
            to: step.next.map_or(end, Target::Step),
            is_expiry: false,
        });
    }
    let Kind::Wait {
        timeout_ms: Some(timeout_ms),
        on_timeout,
        ..
    } = &step.kind
    else {
        return arrows;
    };
    let label = format!("after {}", period::show_ms(*timeout_ms));
    let has_transition = arrows.iter().any(|arrow| arrow.label == TIMEOUT);
    let to = match on_timeout {
        Some(target) => *target,
        None if has_transition => return arrows,
        None => Target::BuiltIn(BuiltIn::TimedOut),
    };
    arrows.push(Arrow {
        from,
        label,
        to,
        is_expiry: true,
    });
    arrows
}

fn shape(form: &Form, step: &Step) -> String {
    let label = |what: &str| quote(&format!("{}\n{what}", step.name));
    match &step.kind {
        Kind::Wait { signal_type, .. } => {
            format!("{{{{{}}}}}", label(&format!("signal {signal_type}")))
        }
        Kind::Run { target } => match target {
            RunTarget::Action(name) => format!("[{}]", label(&format!("@actions/{name}"))),
            RunTarget::Plan(position) => {
                let name = form.plans.get(*position).map_or("", |plan| &plan.name);
                format!("[{}]", label(&format!("@plan/{name}")))
            }
            RunTarget::Workflow { name, version } => {
                let version = version.iter().map(|version| format!(":{version}"));
                let version: String = version.collect();
                format!("[[{}]]", label(&format!("@workflow/{name}{version}")))
            }
        },
    }
}

/// The reachable terminals and all custom ones, with their labels.
fn terminals(form: &Form, arrows: &[Arrow]) -> Vec<(Target, String)> {
    let custom = (0..form.terminals.len()).map(Target::Custom);
    let targets: BTreeSet<Target> = arrows.iter().map(|arrow| arrow.to).chain(custom).collect();
    let label = |target| match target {
        Target::Step(_) => None,
        Target::BuiltIn(terminal) => Some(terminal.name().to_owned()),
        Target::Custom(position) => {
            let terminal = form.terminals.get(position)?;
            Some(format!("{}\n{}", terminal.name, terminal.status.status()))
        }
    };
    let labeled = |target| Some((target, label(target)?));
    targets.into_iter().filter_map(labeled).collect()
}

fn id(target: Target) -> String {
    match target {
        Target::Step(position) => format!("s{position}"),
        Target::Custom(position) => format!("t{position}"),
        Target::BuiltIn(terminal) => format!("flo_{}", terminal.status()),
    }
}

/// A quoted label, with everything escaped that Mermaid would interpret, except intended line
/// breaks.
fn quote(label: &str) -> String {
    let mut quoted = String::from("\"");
    for character in label.chars() {
        match character {
            '\n' => quoted.push_str("<br/>"),
            '"' | '#' | '&' | '<' | '>' | '`' => {
                quoted.push_str(&format!("#{};", u32::from(character)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        let parsed = flotilla_dsl::parse(text);
        let form = Form::of(&parsed).expect("a form that is known");
        let form = form.unwrap_or_else(|| panic!("valid: {:?}", parsed.findings));
        expected.assert_eq(&draw(&form));
    }

    #[test]
    fn steps_waits_children_and_terminals_have_shapes_of_their_own() {
        let text = r#"
kind: Workflow
name: order
version: "1.0.0"
terminals:
  Rejected: {status: failed}
  Unused: {status: completed}
start:
  run: "@actions/check"
  transitions: {success: approve, failure: flo.Failed, odd: start}
steps:
  approve:
    waitForSignal: {type: approval, timeoutMs: 3600000, onTimeout: Rejected}
    transitions: {success: ship}
  ship:
    run: "@workflow/shipping:2.0.0"
    transitions: {success: flo.Completed, failure: Rejected}
"#;
        check(
            text,
            expect![[r#"
            %% order 1.0.0
            flowchart TD
                s0["start<br/>@actions/check"]
                s1{{"approve<br/>signal approval"}}
                s2[["ship<br/>@workflow/shipping:2.0.0"]]
                flo_completed(["flo.Completed"])
                flo_failed(["flo.Failed"])
                t0(["Rejected<br/>failed"])
                t1(["Unused<br/>completed"])
                s0 -->|"success"| s1
                s0 -->|"failure"| flo_failed
                s0 -->|"odd"| s0
                s1 -->|"success"| s2
                s1 -.->|"after 60m"| t0
                s2 -->|"success"| flo_completed
                s2 -->|"failure"| t0
        "#]],
        );
    }

    #[test]
    fn a_wait_that_expires_without_a_target_ends_timed_out() {
        let text = r#"
kind: Workflow
name: parked
version: "1"
start:
  waitForSignal: {type: go, timeoutMs: 1500}
  transitions: {success: flo.Completed}
"#;
        check(
            text,
            expect![[r#"
            %% parked 1
            flowchart TD
                s0{{"start<br/>signal go"}}
                flo_completed(["flo.Completed"])
                flo_timed_out(["flo.TimedOut"])
                s0 -->|"success"| flo_completed
                s0 -.->|"after 1.5s"| flo_timed_out
        "#]],
        );
        let with_transition = text.replace("success: flo", "timeout: flo.Failed, success: flo");
        check(
            &with_transition,
            expect![[r#"
            %% parked 1
            flowchart TD
                s0{{"start<br/>signal go"}}
                flo_completed(["flo.Completed"])
                flo_failed(["flo.Failed"])
                s0 -->|"timeout"| flo_failed
                s0 -->|"success"| flo_completed
        "#]],
        );
    }

    #[test]
    fn the_steps_of_a_list_are_joined_in_their_order() {
        let text = r#"
kind: Workflow
name: delivery
version: "1"
steps:
  - {name: reserve, run: "@actions/reserve"}
  - {name: pick, run: "@actions/pick", transitions: {success: ship, lost: reserve}}
  - {name: ship, run: "@actions/ship"}
"#;
        check(
            text,
            expect![[r#"
            %% delivery 1
            flowchart TD
                s0["reserve<br/>@actions/reserve"]
                s1["pick<br/>@actions/pick"]
                s2["ship<br/>@actions/ship"]
                flo_completed(["flo.Completed"])
                s0 --> s1
                s1 -->|"success"| s2
                s1 -->|"lost"| s0
                s2 --> flo_completed
        "#]],
        );
    }

    #[test]
    fn a_plan_is_named() {
        let text = r#"
kind: Workflow
name: pay
version: "1"
plans:
  charge:
    executors: [{name: a, action: "@actions/a"}]
start:
  run: "@plan/charge"
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;
        check(
            text,
            expect![[r#"
            %% pay 1
            flowchart TD
                s0["start<br/>@plan/charge"]
                flo_completed(["flo.Completed"])
                flo_failed(["flo.Failed"])
                s0 -->|"success"| flo_completed
                s0 -->|"failure"| flo_failed
        "#]],
        );
    }

    #[test]
    fn a_label_means_nothing_to_mermaid() {
        assert_eq!(quote("a \"b\"\n#<c>"), "\"a #34;b#34;<br/>#35;#60;c#62;\"");
    }
}
