//! Lints over the whole graph: unreachable steps and terminals, steps that never end (E301–E303).

use super::{Context, Field};
use crate::{Code, Finding, Span, quote::quote};
use flotilla_engine::definition::{BlockIndex, StepIndex, Target};
use std::borrow::Cow;

/// A step as a node of the graph.
pub(super) struct Outline<'doc> {
    pub(super) name: Cow<'doc, str>,
    /// The span of the step's name.
    pub(super) span: Span,
    /// The targets of its transitions and its timeout.
    pub(super) edges: Vec<Target>,
    /// Whether `edges` is complete; false if one could not be read.
    pub(super) is_complete: bool,
    /// The block that it belongs to.
    pub(super) block: BlockIndex,
    /// The first steps of its branches.
    pub(super) opens: Vec<StepIndex>,
    /// Whether it is a handler of the workflow, to which nothing leads.
    pub(super) is_handler: bool,
}

impl<'doc> Outline<'doc> {
    pub(super) fn new(name: Cow<'doc, str>, span: Span, block: BlockIndex) -> Self {
        Self {
            name,
            span,
            edges: Vec::new(),
            is_complete: true,
            block,
            opens: Vec::new(),
            is_handler: false,
        }
    }

    fn next_steps(&self) -> impl Iterator<Item = usize> {
        self.edges.iter().filter_map(|edge| match edge {
            Target::Step(index) => Some(index.position()),
            Target::BuiltIn(_) | Target::Custom(_) | Target::End(_) => None,
        })
    }

    /// Whether a terminal follows it directly, or may.
    fn may_end(&self) -> bool {
        !self.is_complete
            || self
                .edges
                .iter()
                .any(|edge| !matches!(edge, Target::Step(_)))
    }
}

/// Checks the graph; `steps` are in the definition's order, the start step first.
pub(super) fn check<'doc>(
    steps: &[Outline<'doc>],
    terminals: &[Field<'doc>],
    context: &mut Context<'doc>,
) {
    let edges: Vec<Vec<usize>> = steps
        .iter()
        .map(|step| step.next_steps().collect())
        .collect();
    let mut ways = edges.clone();
    for (way, step) in ways.iter_mut().zip(steps) {
        way.extend(step.opens.iter().map(|first| first.position()));
    }
    let handlers = steps.iter().enumerate().filter(|(_, step)| step.is_handler);
    let handlers = handlers.map(|(position, _)| position);
    let is_reached = spread(
        &ways,
        [StepIndex::START.position()].into_iter().chain(handlers),
    );
    // If the start step is unknown, nothing would be reachable, which means nothing.
    let is_start_known = steps
        .first()
        .is_some_and(|start| start.is_complete || !start.edges.is_empty());
    if is_start_known {
        warn_unreached_steps(steps, &is_reached, context);
        warn_unreached_terminals(steps, &is_reached, terminals, context);
    }

    let ending = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.may_end())
        .map(|(position, _)| position);
    let can_end = spread(&reversed(&edges), ending);
    for (step, _) in steps.iter().zip(&can_end).filter(|(_, can_end)| !**can_end) {
        let message = format!(
            "no path leads from step {} to a terminal",
            quote(&step.name)
        );
        context.warn(Finding::new(Code::E303, step.span, message));
    }
}

fn warn_unreached_steps<'doc>(
    steps: &[Outline<'doc>],
    is_reached: &[bool],
    context: &mut Context<'doc>,
) {
    for (step, _) in steps
        .iter()
        .zip(is_reached)
        .filter(|(_, is_reached)| !**is_reached)
    {
        let message = format!(
            "step {} cannot be reached from the start",
            quote(&step.name)
        );
        context.warn(Finding::new(Code::E301, step.span, message));
    }
}

fn warn_unreached_terminals<'doc>(
    steps: &[Outline<'doc>],
    is_reached: &[bool],
    terminals: &[Field<'doc>],
    context: &mut Context<'doc>,
) {
    let mut is_used = vec![false; terminals.len()];
    for (step, _) in steps
        .iter()
        .zip(is_reached)
        .filter(|(_, is_reached)| **is_reached)
    {
        for edge in &step.edges {
            if let Target::Custom(index) = edge {
                is_used[index.position()] = true;
            }
        }
    }
    for (terminal, _) in terminals
        .iter()
        .zip(&is_used)
        .filter(|(_, is_used)| !**is_used)
    {
        let message = format!("no transition reaches the terminal {}", quote(terminal.key));
        context.warn(Finding::new(Code::E302, terminal.key_span, message));
    }
}

/// The nodes that can be reached from `from`, including those.
fn spread(edges: &[Vec<usize>], from: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut is_reached = vec![false; edges.len()];
    let mut open: Vec<usize> = from.collect();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut is_reached[node], true) {
            open.extend(&edges[node]);
        }
    }
    is_reached
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for &to in targets {
            reversed[to].push(from);
        }
    }
    reversed
}
