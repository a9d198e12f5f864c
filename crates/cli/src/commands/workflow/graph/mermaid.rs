//! A workflow as a Mermaid flowchart.

use super::form::{
    BlockForm, Branch, BuiltIn, Form, Join, Kind, RunTarget, SignalType, Step, Target, Timer,
};
use crate::period;
use std::collections::BTreeSet;
use std::slice;

/// The expiry of a wait, as the outcome of a transition.
const TIMEOUT: &str = "timeout";
/// The outcome that leads to the next step of a list without a transition.
const SUCCESS: &str = "success";
/// The same of a switch.
const NO_MATCH: &str = "no_match";

/// The text of the flowchart, with the start step at the top. Nodes have generated ids, because
/// names may be reserved words of Mermaid.
pub(super) fn draw(form: &Form) -> String {
    let mut text = format!("%% {} {}\nflowchart TD\n", form.name, form.version);
    draw_block(form, OWN_BLOCK, 0, &mut text);
    let arrows: Vec<Arrow> = (0..form.blocks.len())
        .flat_map(|block| block_arrows(form, block))
        .collect();
    for (target, label) in terminals(form, &arrows) {
        let node = id(OWN_BLOCK, target);
        text.push_str(&format!("    {node}([{}])\n", quote(&label)));
    }
    for arrow in &arrows {
        text.push_str(&format!("    {}\n", arrow.text()));
    }
    text
}

/// The position of the workflow's own block.
const OWN_BLOCK: usize = 0;

/// Adds the steps of a block, and those of the blocks that they open as subgraphs. A nested block
/// has its ends as nodes. `depth` is the number of blocks around it.
fn draw_block(form: &Form, block: usize, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth + 1);
    for (position, step) in steps(form, block) {
        if !form.is_handler(position) {
            let node = id(block, Target::Step(position));
            text.push_str(&format!("{indent}{node}{}\n", shape(form, step)));
        }
        for branch in branches(step) {
            let inner = branch.block;
            let name = match form.is_handler(position) {
                true => quote(&step.name),
                false => quote(&branch.name),
            };
            text.push_str(&format!("{indent}subgraph b{inner} [{name}]\n"));
            draw_block(form, inner, depth + 1, text);
            text.push_str(&format!("{indent}end\n"));
        }
    }
    if block == OWN_BLOCK {
        return;
    }
    let arrows = block_arrows(form, block);
    let targets: BTreeSet<Target> = arrows.iter().map(|arrow| arrow.to).collect();
    for target in targets {
        if let Some(outcome) = end(form, target) {
            let node = id(block, target);
            text.push_str(&format!("{indent}{node}([{}])\n", quote(outcome)));
        }
    }
}

fn steps(form: &Form, block: usize) -> impl Iterator<Item = (usize, &Step)> {
    let steps = form.steps.iter().enumerate();
    steps.filter(move |(_, step)| step.block == block)
}

fn branches(step: &Step) -> &[Branch] {
    match &step.kind {
        Kind::Parallel { branches, .. } => branches,
        Kind::Block { body } | Kind::ForEach { body } => slice::from_ref(body),
        Kind::Run { .. }
        | Kind::Wait { .. }
        | Kind::Switch { .. }
        | Kind::Set
        | Kind::Emit { .. }
        | Kind::Timer(_)
        | Kind::Approval { .. } => &[],
    }
}

/// The outcome of a nested block that ends at a target.
fn end(form: &Form, target: Target) -> Option<&str> {
    match target {
        Target::BuiltIn(BuiltIn::Completed) => Some(SUCCESS),
        Target::BuiltIn(BuiltIn::Failed) => Some("failure"),
        Target::BuiltIn(BuiltIn::TimedOut) => Some(TIMEOUT),
        Target::BuiltIn(BuiltIn::Cancelled) => Some("cancelled"),
        Target::End(position) => form.ends.get(position).map(String::as_str),
        Target::Step(_) | Target::Custom(_) => None,
    }
}

/// A way out of a step, or into a branch.
struct Arrow {
    /// The position of the step's block.
    block: usize,
    from: usize,
    /// The outcome; empty for the way to the next step of a list, and into a branch.
    label: String,
    to: Target,
    line: Line,
}

/// The kinds of ways.
#[derive(Clone, Copy)]
enum Line {
    Transition,
    /// Followed on expiry.
    Expiry,
    /// Into a branch, whose first step is the target.
    Branch,
}

impl Arrow {
    fn text(&self) -> String {
        let line = match self.line {
            Line::Transition => "-->",
            Line::Expiry => "-.->",
            Line::Branch => "==>",
        };
        let from = id(self.block, Target::Step(self.from));
        let to = id(self.block, self.to);
        if self.label.is_empty() {
            return format!("{from} {line} {to}");
        }
        format!("{from} {line}|{}| {to}", quote(&self.label))
    }
}

fn block_arrows(form: &Form, block: usize) -> Vec<Arrow> {
    let steps = steps(form, block).filter(|(position, _)| !form.is_handler(*position));
    steps.flat_map(|step| arrows(form, step)).collect()
}

/// A step's branches and transitions, in a list the next step (W50a) and, for a wait with a timeout, where expiry leads
/// (W19).
fn arrows(form: &Form, (from, step): (usize, &Step)) -> Vec<Arrow> {
    let arrow = |label: &str, to, line| Arrow {
        block: step.block,
        from,
        label: label.to_owned(),
        to,
        line,
    };
    let own = form.blocks.get(step.block);
    let starts = branches(step).iter().filter_map(|branch| {
        let inner = form.blocks.get(branch.block)?;
        Some(arrow("", Target::Step(inner.start), Line::Branch))
    });
    let transitions = step.transitions.iter();
    let transitions = transitions.map(|line| arrow(&line.outcome, line.target, Line::Transition));
    let mut arrows: Vec<Arrow> = starts.chain(transitions).collect();
    let is_named = |outcome: &str| step.transitions.iter().any(|line| line.outcome == outcome);
    if let Kind::Switch { arms, default } = &step.kind {
        let conditions = arms
            .iter()
            .map(|arm| arrow(&arm.when.text, arm.target, Line::Transition));
        arrows.extend(conditions);
        arrows.extend(default.map(|target| arrow("default", target, Line::Transition)));
    }
    let leads_on = match &step.kind {
        Kind::Switch { default, .. } => default.is_none() && !is_named(NO_MATCH),
        Kind::Run { .. }
        | Kind::Wait { .. }
        | Kind::Parallel { .. }
        | Kind::Block { .. }
        | Kind::ForEach { .. }
        | Kind::Set
        | Kind::Emit { .. }
        | Kind::Timer(_) => !is_named(SUCCESS),
        Kind::Approval { .. } => !is_named("approved") && !is_named(SUCCESS),
    };
    if own.is_some_and(|own| own.form == BlockForm::List) && leads_on {
        let end = Target::BuiltIn(BuiltIn::Completed);
        let to = step.next.map_or(end, Target::Step);
        arrows.push(arrow("", to, Line::Transition));
    }
    let expiry = match &step.kind {
        Kind::Wait {
            timeout_ms,
            on_timeout,
            ..
        } => Some((timeout_ms, *on_timeout)),
        Kind::Approval { timeout_ms, .. } => Some((timeout_ms, None)),
        _ => None,
    };
    if let Some((Some(timeout_ms), on_timeout)) = expiry
        && (on_timeout.is_some() || !is_named(TIMEOUT))
    {
        let to = on_timeout.unwrap_or(Target::BuiltIn(BuiltIn::TimedOut));
        let label = format!("after {}", period::show_ms(*timeout_ms));
        arrows.push(arrow(&label, to, Line::Expiry));
    }
    arrows
}

fn shape(form: &Form, step: &Step) -> String {
    let label = |what: &str| {
        let mut lines = vec![step.name.clone(), what.to_owned()];
        lines.extend(calls_after(form, step));
        quote(&lines.join("\n"))
    };
    match &step.kind {
        Kind::Wait { signal_type, .. } => {
            let signal = match signal_type {
                SignalType::Fixed(signal_type) => format!("signal {signal_type}"),
                SignalType::Computed(_) => "computed signal".to_owned(),
            };
            format!("{{{{{}}}}}", label(&signal))
        }
        Kind::Parallel { join, .. } => format!(
            "[/{}\\]",
            label(&match join {
                Join::All => "parallel".to_owned(),
                Join::Any => "parallel, any".to_owned(),
                Join::First => "parallel, first".to_owned(),
                Join::Count(count) => format!("parallel, {count}"),
            })
        ),
        Kind::Block { .. } => format!("[/{}\\]", label("block")),
        Kind::ForEach { .. } => format!("[/{}\\]", label("for each")),
        Kind::Switch { .. } => format!("{{{}}}", quote(&step.name)),
        Kind::Set => format!("[{}]", label("set")),
        Kind::Emit { stream } => format!("[{}]", label(&format!("emit to {stream}"))),
        Kind::Timer(Timer::Duration { ms }) => {
            let duration = period::show_ms(*ms);
            format!("{{{{{}}}}}", label(&format!("wait {duration}")))
        }
        Kind::Approval { quorum: 1, .. } => format!("{{{{{}}}}}", label("approval")),
        Kind::Approval { quorum, .. } => {
            format!("{{{{{}}}}}", label(&format!("{quorum} approvals")))
        }
        Kind::Timer(Timer::Until(_)) => format!("{{{{{}}}}}", label("wait until")),
        Kind::Run { call, .. } => {
            let label = label(&target_text(form, &call.target));
            match call.target {
                RunTarget::Action(_) | RunTarget::Plan(_) => format!("[{label}]"),
                RunTarget::Workflow { .. } => format!("[[{label}]]"),
            }
        }
    }
}

/// The calls that a step makes besides its first one, one line each.
fn calls_after(form: &Form, step: &Step) -> Vec<String> {
    let mut calls = Vec::new();
    if let Kind::Run {
        fallback,
        compensation,
        fallback_compensation,
        ..
    } = &step.kind
    {
        calls.push(("fallback", fallback.as_ref()));
        let undo = [
            ("compensate", compensation),
            ("compensate fallback", fallback_compensation),
        ];
        calls.extend(undo.map(|(name, undo)| (name, undo.as_ref().map(|undo| &undo.call))));
    }
    calls.push(("onCancel", step.on_cancel.as_ref()));
    let named = calls.into_iter().filter_map(|(name, call)| {
        let target = target_text(form, &call?.target);
        Some(format!("{name}: {target}"))
    });
    named.collect()
}

/// A target, as the definition's text names it.
fn target_text(form: &Form, target: &RunTarget) -> String {
    match target {
        RunTarget::Action(name) => format!("@actions/{name}"),
        RunTarget::Plan(position) => {
            let name = form.plans.get(*position).map_or("", |plan| &plan.name);
            format!("@plan/{name}")
        }
        RunTarget::Workflow { name, version } => {
            let version = version.iter().map(|version| format!(":{version}"));
            let version: String = version.collect();
            format!("@workflow/{name}{version}")
        }
    }
}

/// The terminals of the workflow that are reached, and all custom ones, with their labels.
fn terminals(form: &Form, arrows: &[Arrow]) -> Vec<(Target, String)> {
    let custom = (0..form.terminals.len()).map(Target::Custom);
    let own = arrows.iter().filter(|arrow| arrow.block == OWN_BLOCK);
    let targets: BTreeSet<Target> = own.map(|arrow| arrow.to).chain(custom).collect();
    let label = |target| match target {
        Target::Step(_) | Target::End(_) => None,
        Target::BuiltIn(terminal) => Some(terminal.name().to_owned()),
        Target::Custom(position) => {
            let terminal = form.terminals.get(position)?;
            Some(format!("{}\n{}", terminal.name, terminal.status.status()))
        }
    };
    let labeled = |target| Some((target, label(target)?));
    targets.into_iter().filter_map(labeled).collect()
}

/// The id of a node, as a step of the block names it.
fn id(block: usize, target: Target) -> String {
    match target {
        Target::Step(position) => format!("s{position}"),
        Target::Custom(position) => format!("t{position}"),
        Target::End(position) => format!("b{block}_end{position}"),
        Target::BuiltIn(terminal) if block == OWN_BLOCK => format!("flo_{}", terminal.status()),
        Target::BuiltIn(terminal) => format!("b{block}_{}", terminal.status()),
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
  fallback: {run: "@actions/ask"}
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
                    s0["start<br/>@actions/check<br/>fallback: @actions/ask"]
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
    fn the_branches_of_a_step_are_subgraphs() {
        let text = r#"
kind: Workflow
name: order
version: "1"
terminals: {Lost: {status: failed}}
start:
  parallel:
    branches:
      mail: {run: "@actions/mail"}
      stock:
        - {name: reserve, run: "@actions/reserve"}
        - {name: pick, parallel: {branches: {left: {run: "@actions/left"}, right: {run: "@actions/right"}}}}
      invoice:
        start: {run: "@actions/render", transitions: {success: send, failure: flo.End.unpaid}}
        steps:
          send: {run: "@actions/send", transitions: {success: flo.Completed, failure: flo.Failed, lost: Lost}}
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;
        check(
            text,
            expect![[r#"
            %% order 1
            flowchart TD
                s0[/"start<br/>parallel"\]
                subgraph b1 ["mail"]
                    s1["mail<br/>@actions/mail"]
                end
                subgraph b2 ["stock"]
                    s2["reserve<br/>@actions/reserve"]
                    s3[/"pick<br/>parallel"\]
                    subgraph b4 ["left"]
                        s6["left<br/>@actions/left"]
                    end
                    subgraph b5 ["right"]
                        s7["right<br/>@actions/right"]
                    end
                    b2_completed(["success"])
                end
                subgraph b3 ["invoice"]
                    s4["invoice<br/>@actions/render"]
                    s5["send<br/>@actions/send"]
                    b3_completed(["success"])
                    b3_failed(["failure"])
                    b3_end0(["unpaid"])
                end
                flo_completed(["flo.Completed"])
                flo_failed(["flo.Failed"])
                t0(["Lost<br/>failed"])
                s0 ==> s1
                s0 ==> s2
                s0 ==> s4
                s0 -->|"success"| flo_completed
                s0 -->|"failure"| flo_failed
                s2 --> s3
                s3 ==> s6
                s3 ==> s7
                s3 --> b2_completed
                s4 -->|"success"| s5
                s4 -->|"failure"| b3_end0
                s5 -->|"success"| b3_completed
                s5 -->|"failure"| b3_failed
                s5 -->|"lost"| t0
        "#]],
        );
    }

    #[test]
    fn every_other_kind_of_step_is_drawn() {
        let text = r#"
kind: Workflow
name: kinds
version: "1"
steps:
  - {name: ask, waitForSignal: {type: go}}
  - {name: rest, wait: {duration: 90s}}
  - {name: later, wait: {until: $.input.at}}
  - {name: note, set: {n: 1}}
  - {name: body, block: [{name: try, run: "@actions/try"}], retry: {max_attempts: 2}}
  - {name: each, forEach: {items: $.input.all, do: {run: "@actions/one"}}}
  - {name: tell, emit: {stream: orders, payload: {n: 1}}}
"#;
        check(
            text,
            expect![[r#"
                %% kinds 1
                flowchart TD
                    s0{{"ask<br/>signal go"}}
                    s1{{"rest<br/>wait 90s"}}
                    s2{{"later<br/>wait until"}}
                    s3["note<br/>set"]
                    s4[/"body<br/>block"\]
                    subgraph b1 ["body-block"]
                        s7["try<br/>@actions/try"]
                        b1_completed(["success"])
                    end
                    s5[/"each<br/>for each"\]
                    subgraph b2 ["each-item"]
                        s8["each-item<br/>@actions/one"]
                    end
                    s6["tell<br/>emit to orders"]
                    flo_completed(["flo.Completed"])
                    s0 --> s1
                    s1 --> s2
                    s2 --> s3
                    s3 --> s4
                    s4 ==> s7
                    s4 --> s5
                    s5 ==> s8
                    s5 --> s6
                    s6 --> flo_completed
                    s7 --> b1_completed
            "#]],
        );
    }

    #[test]
    fn handlers_lead_nowhere_and_steps_say_how_they_are_undone() {
        let text = r#"
kind: Workflow
name: booking
version: "1"
steps:
  - name: book
    run: "@actions/book"
    fallback: {run: "@actions/call", compensate: {run: "@actions/call-off"}}
    compensate: {run: "@actions/free"}
    onCancel: {run: "@actions/leave"}
  - {name: rest, wait: {duration: 90s}, onCancel: {run: "@actions/wake"}}
onError: [{name: tell, run: "@actions/mail"}]
onCancel: [{name: note, set: {cancelled: true}}]
"#;
        check(
            text,
            expect![[r#"
            %% booking 1
            flowchart TD
                s0["book<br/>@actions/book<br/>fallback: @actions/call<br/>compensate: @actions/free<br/>compensate fallback: @actions/call-off<br/>onCancel: @actions/leave"]
                s1{{"rest<br/>wait 90s<br/>onCancel: @actions/wake"}}
                subgraph b1 ["onError"]
                    s4["tell<br/>@actions/mail"]
                    b1_completed(["success"])
                end
                subgraph b2 ["onCancel"]
                    s5["note<br/>set"]
                    b2_completed(["success"])
                end
                flo_completed(["flo.Completed"])
                s0 --> s1
                s1 --> flo_completed
                s4 --> b1_completed
                s5 --> b2_completed
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
