//! The names that a document defines, collected before anything that refers to them is read.

use super::{Context, Field, Reported, for_each::Loop};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::{
    definition::{
        BlockIndex, BuiltInTerminal, EndIndex, PlanIndex, StepIndex, Target, TerminalIndex,
    },
    ids::{NameInvalid, OutcomeName, PlanName, StepName, TerminalName},
    limits::ENDS_MAX,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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
    steps: BTreeMap<Cow<'doc, str>, (StepIndex, u32)>,
    /// The block of each step.
    blocks: Vec<BlockIndex>,
    /// The step that opens each block.
    openers: Vec<Option<StepIndex>>,
    iterations: BTreeMap<StepIndex, Loop<'doc>>,
    /// The handlers of the workflow.
    handlers: BTreeMap<StepIndex, Handler>,
    /// The branches, with the line of each.
    branches: BTreeMap<Cow<'doc, str>, u32>,
    /// The outcomes of `flo.End.NAME`.
    ends: BTreeMap<OutcomeName, EndIndex>,
    terminals: BTreeMap<&'doc str, TerminalIndex>,
    plans: BTreeMap<&'doc str, PlanIndex>,
    /// The plans that have a fallback (E509).
    plans_with_fallback: Vec<PlanIndex>,
}

/// A handler of the workflow (W80, W81).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// `onError`.
    Error,
    /// `onCancel`.
    Cancel,
}

impl<'doc> Names<'doc> {
    pub(super) fn add_handler(&mut self, step: StepIndex, handler: Handler) {
        self.handlers.insert(step, handler);
    }

    /// The step of a handler.
    pub(super) fn handler(&self, handler: Handler) -> Option<StepIndex> {
        let mut handlers = self.handlers.iter();
        let found = handlers.find(|(_, known)| **known == handler);
        found.map(|(step, _)| *step)
    }

    /// The steps of all handlers.
    pub(super) fn handlers(&self) -> Vec<StepIndex> {
        self.handlers.keys().copied().collect()
    }

    /// The handler that a block belongs to.
    pub(super) fn handler_around(&self, block: BlockIndex) -> Option<Handler> {
        let outermost = self.openers_of(block).last().copied();
        outermost.and_then(|opener| self.handlers.get(&opener).copied())
    }

    /// Whether a block is the outermost block of a handler.
    pub(super) fn is_of_handler(&self, block: BlockIndex) -> bool {
        let openers = self.openers_of(block);
        matches!(&openers[..], [opener] if self.handlers.contains_key(opener))
    }

    /// The step with that name; the start step has two names.
    pub(super) fn step(&self, name: &str) -> Option<StepIndex> {
        if name == START || name == START_IN_PATHS {
            return Some(StepIndex::START);
        }
        self.steps.get(name).map(|(index, _)| *index)
    }

    /// The block that a step belongs to.
    pub(super) fn block(&self, step: StepIndex) -> BlockIndex {
        self.blocks[step.position()]
    }

    /// The iterations around a block, the innermost first.
    pub(super) fn loops_around(&self, block: BlockIndex) -> Vec<&Loop<'doc>> {
        let openers = self.openers_of(block);
        let iterations = openers.iter().map(|opener| self.iterations.get(opener));
        iterations.flatten().collect()
    }

    /// The steps that open a block and those around it, the innermost first.
    fn openers_of(&self, block: BlockIndex) -> Vec<StepIndex> {
        let mut openers = Vec::new();
        let mut block = block;
        while let Some(opener) = self.openers[block.position()] {
            openers.push(opener);
            block = self.block(opener);
        }
        openers
    }

    /// The `forEach` whose iterations hide a step from a block (E511).
    pub(super) fn hiding(&self, step: StepIndex, from: BlockIndex) -> Option<StepIndex> {
        let around = self.openers_of(from);
        let openers = self.openers_of(self.block(step));
        let mut hiding = openers
            .into_iter()
            .filter(|opener| !around.contains(opener));
        hiding.find(|opener| self.iterations.contains_key(opener))
    }

    /// The name of a step.
    pub(super) fn name(&self, step: StepIndex) -> &str {
        let mut steps = self.steps.iter();
        let found = steps.find(|(_, (index, _))| *index == step);
        found.map_or(START, |(name, _)| name)
    }

    pub(super) fn add_loop(&mut self, iteration: Loop<'doc>) {
        self.iterations.insert(iteration.step, iteration);
    }

    pub(super) fn add_block(&mut self, opener: Option<StepIndex>) {
        self.openers.push(opener);
    }

    /// The place of an outcome among those of `flo.End.NAME`; `None` if there are too many of them.
    pub(super) fn end(&mut self, outcome: OutcomeName) -> Option<EndIndex> {
        let count = self.ends.len();
        match self.ends.entry(outcome) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(place) if count < ENDS_MAX => Some(*place.insert(EndIndex(index(count)))),
            Entry::Vacant(_) => None,
        }
    }

    /// The outcomes of `flo.End.NAME`, in the order of their places.
    pub(super) fn take_ends(&mut self) -> Vec<OutcomeName> {
        let mut ends: Vec<_> = std::mem::take(&mut self.ends).into_iter().collect();
        ends.sort_by_key(|(_, place)| *place);
        ends.into_iter().map(|(outcome, _)| outcome).collect()
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
            .or_else(|| self.target_step(name).map(Target::Step))
            .or_else(|| self.terminals.get(name).copied().map(Target::Custom))
    }

    /// The step with that name, unless it is a handler: nothing leads there.
    fn target_step(&self, name: &str) -> Option<StepIndex> {
        let step = self.step(name)?;
        (!self.handlers.contains_key(&step)).then_some(step)
    }

    /// The names of all steps, `start` first.
    pub(super) fn steps(&self) -> impl Iterator<Item = &str> {
        [START]
            .into_iter()
            .chain(self.steps.keys().map(|name| &**name))
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = &'doc str> {
        self.plans.keys().copied()
    }

    /// The names of all possible targets of a transition.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        let built_in = BuiltInTerminal::ALL
            .into_iter()
            .map(|terminal| -> &str { terminal.name() });
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

/// A step whose name is to be made known.
pub(super) struct NewStep<'doc> {
    pub(super) name: Cow<'doc, str>,
    pub(super) span: Span,
    pub(super) index: StepIndex,
    pub(super) block: BlockIndex,
    /// The name of the block that it begins: the step may have the same one.
    pub(super) begun: Option<Cow<'doc, str>>,
}

/// Notes the block of a step without a name.
pub(super) fn add_unnamed(block: BlockIndex, context: &mut Context<'_>) {
    context.names.blocks.push(block);
}

/// Validates the name of a branch and makes it known: branches and steps share one set of names (E105).
pub(super) fn add_branch<'doc>(
    name: Cow<'doc, str>,
    span: Span,
    context: &mut Context<'doc>,
) -> Result<StepName, Reported> {
    if is_reserved(&name) {
        return Err(reserved(&name, span, context));
    }
    let names = &context.names;
    let of_step = names.steps.get(&name).map(|(_, line)| *line);
    if let Some(first_line) = of_step.or_else(|| names.branches.get(&name).copied()) {
        return Err(duplicate(&name, (span, first_at(first_line)), context));
    }
    let valid = StepName::new(&*name);
    context.names.branches.insert(name, span.line);
    valid.map_err(|error| context.malformed(span, error.to_string()))
}

/// Whether only the workflow's first step has this name.
fn is_reserved(name: &str) -> bool {
    name == START || name == START_IN_PATHS
}

fn reserved(name: &str, span: Span, context: &mut Context<'_>) -> Reported {
    let message = format!(
        "the step name {} is reserved for the start step",
        quote(name)
    );
    let finding = Finding::new(Code::E105, span, message);
    context.error(finding.hint("`start` is the name of the workflow's first step"))
}

fn first_at(line: u32) -> String {
    format!("the first one is at line {line}")
}

fn duplicate(name: &str, (span, hint): (Span, String), context: &mut Context<'_>) -> Reported {
    let message = format!("duplicate step {}", quote(name));
    context.error(Finding::new(Code::E105, span, message).hint(hint))
}

/// Validates the name of a step and makes it known (E105).
pub(super) fn add_step<'doc>(
    new: NewStep<'doc>,
    context: &mut Context<'doc>,
) -> Result<StepName, Reported> {
    let NewStep {
        name,
        span,
        index,
        block,
        begun,
    } = new;
    context.names.blocks.push(block);
    if is_reserved(&name) && index != StepIndex::START {
        return Err(reserved(&name, span, context));
    }
    let valid = StepName::new(&*name);
    // The start step is known by its names anyway.
    if !is_reserved(&name) {
        let names = &context.names;
        let of_step = names.steps.get(&name).map(|(_, line)| *line);
        let of_branch = names.branches.get(&name).copied();
        let of_branch = of_branch.filter(|_| begun.as_ref() != Some(&name));
        let hint = match (of_step, of_branch) {
            (Some(line), _) => Some(first_at(line)),
            (None, Some(line)) => Some(format!(
                "a branch at line {line} has this name: branches and steps share one set of names"
            )),
            (None, None) => None,
        };
        if let Some(hint) = hint {
            return Err(duplicate(&name, (span, hint), context));
        }
        context.names.steps.insert(name, (index, span.line));
    }
    valid.map_err(|error| context.malformed(span, error.to_string()))
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
