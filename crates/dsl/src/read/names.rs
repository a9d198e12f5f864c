//! The names that a document defines, collected before anything refers to them.

use super::{Context, Field, Reported};
use crate::{Code, Finding, quote::quote};
use flotilla_engine::{
    definition::{BuiltInTerminal, PlanIndex, StepIndex, Target, TerminalIndex},
    limits,
};
use std::collections::BTreeMap;

/// The published name of the start step (W10).
pub(super) const START: &str = "start";
/// The manual's other name for it, in paths.
const START_IN_PATHS: &str = "_start";
/// The prefix of built-in terminals.
const BUILT_IN_PREFIX: &str = "flo.";

/// Names to positions, each in document order.
#[derive(Debug, Default)]
pub(super) struct Names<'doc> {
    steps: BTreeMap<&'doc str, StepIndex>,
    terminals: BTreeMap<&'doc str, TerminalIndex>,
    plans: BTreeMap<&'doc str, PlanIndex>,
    /// The plans that have a fallback (E509).
    plans_with_fallback: Vec<PlanIndex>,
}

impl<'doc> Names<'doc> {
    /// The step of that name; the start step answers to both its names.
    pub(super) fn step(&self, name: &str) -> Option<StepIndex> {
        if name == START || name == START_IN_PATHS {
            return Some(StepIndex::START);
        }
        self.steps.get(name).copied()
    }

    pub(super) fn plan(&self, name: &str) -> Option<PlanIndex> {
        self.plans.get(name).copied()
    }

    /// The step or terminal of that name.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        let built_in = BuiltInTerminal::ALL.into_iter().find(|terminal| terminal.name() == name);
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

    /// The names of everything that a transition can lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = &'doc str> {
        let built_in = BuiltInTerminal::ALL.into_iter().map(BuiltInTerminal::name);
        built_in.chain(self.steps()).chain(self.terminals.keys().copied())
    }

    pub(super) fn has_fallback(&self, plan: PlanIndex) -> bool {
        self.plans_with_fallback.contains(&plan)
    }

    pub(super) fn note_fallback(&mut self, plan: PlanIndex) {
        self.plans_with_fallback.push(plan);
    }
}

/// Notes the names under `steps` (E105).
pub(super) fn collect_steps<'doc>(steps: &[Field<'doc>], context: &mut Context<'doc>) -> Result<(), Reported> {
    let mut result = Ok(());
    for (position, step) in steps.iter().enumerate() {
        if step.key == START || step.key == START_IN_PATHS {
            let message = format!("the step name {} is reserved for the start step", quote(step.key));
            let finding = Finding::new(Code::E105, step.key_span, message);
            result = Err(context.error(finding.hint("the start step stands at the top level, under `start`")));
            continue;
        }
        // Position 0 of the definition's list is the start step.
        match position_within_limit(position + 1, step, context) {
            Ok(index) => drop(context.names.steps.insert(step.key, StepIndex(index))),
            Err(reported) => return Err(reported),
        }
    }
    result
}

/// Notes the names under `terminals`; steps must have been noted before (E107).
pub(super) fn collect_terminals<'doc>(
    terminals: &[Field<'doc>],
    context: &mut Context<'doc>,
) -> Result<(), Reported> {
    let mut result = Ok(());
    for (position, terminal) in terminals.iter().enumerate() {
        let name = quote(terminal.key);
        let clash = if context.names.target(terminal.key).is_some_and(|target| matches!(target, Target::BuiltIn(_))) {
            Some(format!("the terminal {name} is built in"))
        } else if terminal.key.starts_with(BUILT_IN_PREFIX) {
            Some(format!("the terminal name {name} begins with `{BUILT_IN_PREFIX}`, which built-in terminals alone do"))
        } else if context.names.step(terminal.key).is_some() {
            Some(format!("{name} is the name of a step and of a terminal"))
        } else {
            None
        };
        if let Some(message) = clash {
            result = Err(context.error(Finding::new(Code::E107, terminal.key_span, message)));
            continue;
        }
        let index = position_within_limit(position, terminal, context)?;
        context.names.terminals.insert(terminal.key, TerminalIndex(index));
    }
    result
}

/// Notes the names under `plans`.
pub(super) fn collect_plans<'doc>(plans: &[Field<'doc>], context: &mut Context<'doc>) -> Result<(), Reported> {
    for (position, plan) in plans.iter().enumerate() {
        let index = position_within_limit(position, plan, context)?;
        context.names.plans.insert(plan.key, PlanIndex(index));
    }
    Ok(())
}

/// The position as the definition stores it; what holds for steps holds for plans and terminals.
fn position_within_limit<'doc>(
    position: usize,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<u16, Reported> {
    u16::try_from(position).ok().filter(|_| position < limits::STEPS_MAX).ok_or_else(|| {
        let message = format!("expected at most {} steps, plans or terminals, but {} is one more", limits::STEPS_MAX, field.place);
        context.malformed(field.key_span, message)
    })
}
