//! The names that a document defines, collected before anything that refers to them is read.

use super::{Context, Field, Reported};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::{
    definition::{BuiltInTerminal, PlanIndex, StepIndex, Target, TerminalIndex},
    ids::{NameInvalid, PlanName, StepName, TerminalName},
};
use std::collections::BTreeMap;

/// The published name of the start step (W10).
pub(super) const START: &str = "start";
/// The manual's other name for the start step, in paths.
const START_IN_PATHS: &str = "_start";
/// The prefix of built-in terminals.
const BUILT_IN_PREFIX: &str = "flo.";

/// Names to positions, each in document order.
#[derive(Debug, Default)]
pub(super) struct Names<'doc> {
    /// With the line of each.
    steps: BTreeMap<&'doc str, (StepIndex, u32)>,
    terminals: BTreeMap<&'doc str, TerminalIndex>,
    plans: BTreeMap<&'doc str, PlanIndex>,
    /// The plans that have a fallback (E509).
    plans_with_fallback: Vec<PlanIndex>,
}

impl<'doc> Names<'doc> {
    /// The step with that name; the start step has two names.
    pub(super) fn step(&self, name: &str) -> Option<StepIndex> {
        if name == START || name == START_IN_PATHS {
            return Some(StepIndex::START);
        }
        self.steps.get(name).map(|(index, _)| *index)
    }

    pub(super) fn plan(&self, name: &str) -> Option<PlanIndex> {
        self.plans.get(name).copied()
    }

    /// The step or terminal with that name.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        let built_in = BuiltInTerminal::ALL
            .into_iter()
            .find(|terminal| terminal.name() == name);
        built_in
            .map(Target::BuiltIn)
            .or_else(|| self.step(name).map(Target::Step))
            .or_else(|| self.terminals.get(name).copied().map(Target::Custom))
    }

    /// The names of all steps, `start` first.
    pub(super) fn steps(&self) -> impl Iterator<Item = &'doc str> {
        [START].into_iter().chain(self.steps.keys().copied())
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = &'doc str> {
        self.plans.keys().copied()
    }

    /// The names of all possible targets of a transition.
    pub(super) fn targets(&self) -> impl Iterator<Item = &'doc str> {
        let built_in = BuiltInTerminal::ALL
            .into_iter()
            .map(|terminal| -> &'doc str { terminal.name() });
        built_in
            .chain(self.steps())
            .chain(self.terminals.keys().copied())
    }

    pub(super) fn has_fallback(&self, plan: PlanIndex) -> bool {
        self.plans_with_fallback.contains(&plan)
    }

    pub(super) fn note_fallback(&mut self, plan: PlanIndex) {
        self.plans_with_fallback.push(plan);
    }
}

/// Validates the name of the step at `index` and makes it known (E105).
pub(super) fn add_step<'doc>(
    name: &'doc str,
    span: Span,
    index: StepIndex,
    context: &mut Context<'doc>,
) -> Result<StepName, Reported> {
    let is_reserved = name == START || name == START_IN_PATHS;
    if is_reserved && index != StepIndex::START {
        let message = format!(
            "the step name {} is reserved for the start step",
            quote(name)
        );
        let finding = Finding::new(Code::E105, span, message);
        return Err(context.error(finding.hint("`start` is the name of the workflow's first step")));
    }
    if let Some((_, first_line)) = context.names.steps.get(name) {
        let hint = format!("the first one is at line {first_line}");
        let message = format!("duplicate step {}", quote(name));
        return Err(context.error(Finding::new(Code::E105, span, message).hint(hint)));
    }
    context.names.steps.insert(name, (index, span.line));
    StepName::new(name).map_err(|error| context.malformed(span, error.to_string()))
}

/// Validates and collects the names under `terminals`; after the steps' names (E107).
pub(super) fn collect_terminals<'doc>(
    terminals: &[Field<'doc>],
    context: &mut Context<'doc>,
) -> Vec<Result<TerminalName, Reported>> {
    let read = |(position, terminal): (usize, &Field<'doc>)| {
        if let Some(message) = clash(terminal.key, &context.names) {
            return Err(context.error(Finding::new(Code::E107, terminal.key_span, message)));
        }
        context
            .names
            .terminals
            .insert(terminal.key, TerminalIndex(index(position)));
        name(TerminalName::new(terminal.key), terminal, context)
    };
    terminals.iter().enumerate().map(read).collect()
}

/// Describes what the name of a terminal clashes with.
fn clash(name: &str, names: &Names<'_>) -> Option<String> {
    let shown = quote(name);
    match names.target(name) {
        Some(Target::BuiltIn(_)) => Some(format!("the terminal {shown} is built in")),
        Some(Target::Step(_)) => Some(format!("{shown} is the name of a step and of a terminal")),
        _ if name.starts_with(BUILT_IN_PREFIX) => Some(format!(
            "the terminal name {shown} begins with `{BUILT_IN_PREFIX}`, as only built-in ones do"
        )),
        _ => None,
    }
}

/// Validates and collects the names under `plans`.
pub(super) fn collect_plans<'doc>(
    plans: &[Field<'doc>],
    context: &mut Context<'doc>,
) -> Vec<Result<PlanName, Reported>> {
    let read = |(position, plan): (usize, &Field<'doc>)| {
        context
            .names
            .plans
            .insert(plan.key, PlanIndex(index(position)));
        name(PlanName::new(plan.key), plan, context)
    };
    plans.iter().enumerate().map(read).collect()
}

fn index(position: usize) -> u16 {
    u16::try_from(position).expect("the document's reader refuses longer lists")
}

fn name<'doc, T>(
    result: Result<T, NameInvalid>,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<T, Reported> {
    result.map_err(|error| context.malformed(field.key_span, error.to_string()))
}
