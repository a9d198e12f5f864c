//! Workflow definitions (W0–W6): YAML or JSON text to the intermediate form, or to findings.

use super::place::{assert_sentence, assert_within};
use crate::target::{Target, Verdict};
use flotilla_dsl::{FINDINGS_MAX, Finding, Severity, parse, render};
use flotilla_engine::codec;
use flotilla_engine::definition::{
    Block, BlockForm, BlockIndex, Branch, Call, CallRole, Definition, Expression, Part, Root,
    RunTarget, SignalTypeValue, Step, StepIndex, StepKind, StepRetry, Target as Goal, Template,
    TimerStep, Variable,
};
use flotilla_engine::limits::{APPROVERS_MAX, CONCURRENT_ITERATIONS_MAX, WAIT_MS_MAX};

pub(super) const TARGET: Target = Target {
    name: "definition",
    summary: "workflow definitions: findings lie in the text, what is accepted survives the log",
    tokens: &[
        "kind: Workflow\n",
        "name: ",
        "version: \"1\"\n",
        "start:",
        "steps:",
        "plans:",
        "terminals:",
        "schedule: {cron: \"0 0 * * *\"}\n",
        "trigger: {stream: s}\n",
        "triggers: [{stream: s, when: record.payload.a == 1}]\n",
        "searchAttributes:",
        "output:",
        "transitions:",
        "success: flo.Completed",
        "failure: flo.Failed",
        "run: \"@actions/a\"",
        "run: \"@plan/p\"",
        "run: \"@workflow/w:1\"",
        "waitForSignal:",
        "parallel: {branches: {b: {run: \"@actions/a\"}}}",
        "branches:",
        "- {name: s, run: \"@actions/a\"}\n",
        "failure: flo.End.e",
        "inputMapping:",
        "retry:",
        "fallback: {run: \"@actions/b\", inputMapping: {e: $.error}}",
        "timeouts: {attempt: 1s, total: 1m}",
        "retry: {on: [busy], when: \"error.code == 'x' && attempt < 3\"}",
        "defaults: {retry: {delays: [1s]}}\n",
        "poll:",
        "$.input",
        "$.steps.start.output",
        "{",
        "}",
        "[",
        "]",
        "*a",
        "&a ",
        ": ",
        "- ",
        "\n",
        "  ",
        "'",
        "\"",
        "|\n",
        "#",
        "!!str ",
        "---\n",
        "? ",
        "é",
        "\\",
        "~",
        "-1",
        "1.5",
        "null",
        "\r",
        "\u{85}",
    ],
    check,
};

/// The maximum size in the log for each byte of text: a text of the maximum size
/// must still fit into an entry.
const LOG_BYTES_PER_TEXT_BYTE: usize = 8;
/// How much aliases may add to a text (W1), and defaults to a short one. In bytes.
const TEXT_BYTES_ADDED: usize = 1 << 20;
/// The maximum size of a printed finding. In bytes.
const SHOWN_BYTES_MAX: usize = 8 << 10;

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let parsed = parse(text);
    check_findings(&parsed.findings, text);
    for reference in &parsed.references {
        assert_within(reference.span, lines(text));
    }
    let is_refused = parsed.findings.iter().any(is_error);
    assert_eq!(
        parsed.is_refused(),
        is_refused,
        "errors and nothing else refuse"
    );
    match parsed.definition {
        None => Verdict::Refused,
        Some(definition) => {
            check_definition(&definition, text);
            Verdict::Accepted
        }
    }
}

fn is_error(finding: &Finding) -> bool {
    finding.severity() == Severity::Error
}

fn check_findings(findings: &[Finding], text: &str) {
    assert!(findings.len() <= FINDINGS_MAX);
    assert!(
        findings.is_sorted_by_key(|finding| (finding.severity(), finding.span)),
        "errors come first, each kind in the order of the document"
    );
    for finding in findings {
        assert_within(finding.span, lines(text));
        assert_sentence(&finding.message);
        if let Some(hint) = &finding.hint {
            assert_sentence(hint);
        }
    }
    let shown = render(findings, text, "w.yaml");
    assert!(shown.len() <= SHOWN_BYTES_MAX * findings.len());
}

fn check_definition(definition: &Definition, text: &str) {
    let encoded = codec::encode(definition);
    let decoded: Definition = codec::decode(&encoded).expect("just encoded");
    assert_eq!(decoded, *definition, "the log keeps it as it is");
    assert!(encoded.len() <= LOG_BYTES_PER_TEXT_BYTE * (text.len() + TEXT_BYTES_ADDED));
    assert_eq!(
        parse(text).definition.as_ref(),
        Some(definition),
        "the same text is the same definition"
    );
    check_indexes(definition);
}

/// Every index is valid: the engine does not check again.
fn check_indexes(definition: &Definition) {
    let root = definition.block(BlockIndex::ROOT);
    assert_eq!(root.start, StepIndex::START);
    let start = definition.step(StepIndex::START).name.as_str();
    assert!(root.form == BlockForm::List || start == "start");
    for (position, block) in (0..).zip(&definition.blocks) {
        check_block(definition, BlockIndex(position), block);
    }
    for (position, step) in (0..).zip(&definition.steps) {
        let block = definition.block(step.block);
        if let Some(next) = step.next {
            assert_eq!(block.form, BlockForm::List);
            assert_eq!(definition.step(next).block, step.block);
        }
        let transitions = step.transitions.iter().map(|transition| transition.target);
        transitions.for_each(|target| {
            check_target(definition, target);
            if let Goal::Step(next) = target {
                assert_eq!(
                    definition.step(next).block,
                    step.block,
                    "a block has one entry"
                );
            }
        });
        check_values(definition, step);
        check_retry(
            definition,
            definition.retry(StepIndex(position), CallRole::Target),
        );
        check_kind(definition, step);
    }
    let output = definition.output.as_ref();
    check_template(
        definition,
        output.and_then(|output| output.extract.as_ref()),
    );
    check_template(definition, definition.state.as_ref());
    for trigger in &definition.triggers {
        let variables = trigger.when.iter().flat_map(|when| &when.variables);
        for variable in variables {
            assert_eq!(*variable, Variable::Record, "there is no run yet");
        }
    }
    for terminal in &definition.terminals {
        check_template(definition, terminal.output.as_ref());
    }
    for attribute in &definition.search_attributes {
        check_root(definition, attribute.from.root);
    }
}

/// What a step does refers to what is there.
fn check_kind(definition: &Definition, step: &Step) {
    match &step.kind {
        StepKind::Run(run) => {
            for call in [Some(&run.call), run.fallback.as_ref()]
                .into_iter()
                .flatten()
            {
                check_call(definition, call);
            }
        }
        StepKind::Wait(wait) => {
            if let SignalTypeValue::Computed(template) = &wait.signal_type {
                check_template(definition, Some(template));
            }
            wait.on_timeout
                .into_iter()
                .for_each(|target| check_target(definition, target));
        }
        StepKind::Approval(approval) => {
            assert!((1..=APPROVERS_MAX).contains(&usize::from(approval.quorum)));
            check_template(definition, Some(&approval.approvers));
        }
        StepKind::Set => assert!(step.set.is_some()),
        StepKind::Timer(TimerStep::Duration { ms }) => assert!(*ms <= WAIT_MS_MAX),
        StepKind::Timer(TimerStep::Until(until)) => check_template(definition, Some(until)),
        StepKind::Emit(emit) => {
            check_template(definition, emit.key.as_ref());
            check_template(definition, Some(&emit.payload));
        }
        StepKind::Switch(switch) => {
            assert!(!switch.arms.is_empty());
            for arm in &switch.arms {
                check_target(definition, arm.target);
                check_expression(definition, &arm.when);
            }
            switch
                .default
                .into_iter()
                .for_each(|target| check_target(definition, target));
        }
        StepKind::Parallel(parallel) => {
            assert!(!parallel.branches.is_empty());
            let branches = parallel.branches.iter();
            branches.for_each(|branch| check_opened(definition, step, branch));
        }
        StepKind::Block(block) => check_opened(definition, step, &block.body),
        StepKind::ForEach(each) => {
            assert!((1..=CONCURRENT_ITERATIONS_MAX).contains(&each.concurrency));
            check_template(definition, Some(&each.items));
            check_opened(definition, step, &each.body);
        }
    }
}

fn check_call(definition: &Definition, call: &Call) {
    if let RunTarget::Plan(plan) = call.target {
        assert!(plan.position() < definition.plans.len());
    }
    check_template(definition, call.input.as_ref());
    check_retry(
        definition,
        call.retry.or(definition.defaults.retry.as_ref()),
    );
}

/// A block knows the step that opens it.
fn check_opened(definition: &Definition, step: &Step, branch: &Branch) {
    let opener = definition.block(branch.block).opener;
    let opener = opener.expect("a nested block has an opener");
    assert_eq!(definition.step(opener).name, step.name);
}

/// The first step of a block belongs to it, and the blocks form a tree: each comes after the one around it.
fn check_block(definition: &Definition, index: BlockIndex, block: &Block) {
    assert_eq!(definition.step(block.start).block, index);
    check_template(definition, block.output.as_ref());
    match block.opener {
        Some(opener) => {
            assert!(definition.step(opener).block < index);
            let branches = definition.branches(opener);
            assert!(branches.iter().any(|branch| branch.block == index));
        }
        None => assert_eq!(index, BlockIndex::ROOT),
    }
}

fn check_target(definition: &Definition, target: Goal) {
    match target {
        Goal::Step(step) => assert!(step.position() < definition.steps.len()),
        Goal::BuiltIn(_) => {}
        Goal::Custom(terminal) => assert!(terminal.position() < definition.terminals.len()),
        Goal::End(end) => assert!(end.position() < definition.ends.len()),
    }
}

/// The indexes are valid, and with a value in each hole the template is JSON.
fn check_template(definition: &Definition, template: Option<&Template>) {
    let Some(template) = template else {
        return;
    };
    let mut filled = String::new();
    for part in &template.parts {
        match part {
            Part::Literal(text) => filled.push_str(text),
            Part::Path(path) => {
                check_root(definition, path.root);
                filled.push_str("null");
            }
            Part::Expression(expression) => {
                check_expression(definition, expression);
                filled.push_str("null");
            }
        }
    }
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&filled) {
        panic!("expected a filled template to be JSON, but {error}: {filled}");
    }
}

fn check_retry(definition: &Definition, retry: Option<&StepRetry>) {
    if let Some(condition) = retry.and_then(|retry| retry.when.as_ref()) {
        check_expression(definition, condition);
    }
}

/// What a step reads besides what its kind needs.
fn check_values(definition: &Definition, step: &Step) {
    if let Some(writes) = &step.set {
        check_template(definition, Some(&writes.object));
    }
    if let Some(condition) = &step.skip_if {
        check_expression(definition, condition);
    }
}

fn check_expression(definition: &Definition, expression: &Expression) {
    for variable in &expression.variables {
        match variable {
            Variable::Root(root) => check_root(definition, *root),
            Variable::Now | Variable::Attempt | Variable::Record => {}
        }
    }
}

fn check_root(definition: &Definition, root: Root) {
    match root {
        Root::StepOutput(step)
        | Root::StepOutcome(step)
        | Root::Item(step)
        | Root::ItemIndex(step) => {
            assert!(step.position() < definition.steps.len());
        }
        Root::Input
        | Root::State
        | Root::Meta
        | Root::Result
        | Root::Error
        | Root::EndCause
        | Root::RunId
        | Root::Timestamp
        | Root::Run(_) => {}
    }
}

/// The lines as YAML counts them: `\n`, `\r\n` and a lone `\r` each end one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}
