//! Outcomes: their names, and where they lead (W11).

use super::failure::is_failure;
use crate::definition::{
    BlockForm, BlockIndex, BuiltInTerminal, Definition, Step, StepKind, Target,
};
use crate::ids::OutcomeName;

/// The outcomes that the engine itself knows.
pub(crate) mod name {
    use crate::ids::OutcomeName;

    pub(crate) const SUCCESS: &str = "success";
    pub(crate) const SKIPPED: &str = "skipped";
    pub(crate) const APPROVED: &str = "approved";
    pub(crate) const REJECTED: &str = "rejected";
    pub(crate) const DEFAULT: &str = "default";
    pub(crate) const NO_MATCH: &str = "no_match";
    pub(crate) const FAILURE: &str = "failure";
    pub(crate) const TIMEOUT: &str = "timeout";
    pub(crate) const CANCELLED: &str = "cancelled";
    pub(crate) const RETRY_RUN: &str = "retry_run";
    pub(crate) const PENDING: &str = "pending";
    pub(crate) const TARGET_NOT_FOUND: &str = "target_not_found";
    pub(crate) const TARGET_DISABLED: &str = "target_disabled";
    pub(crate) const EXECUTION_FAILURE: &str = "execution_failure";

    /// One of the constants above as a typed name.
    pub(crate) fn of(text: &str) -> OutcomeName {
        OutcomeName::new(text).expect("the engine's own outcomes are well-formed")
    }
}

/// Whether a step, branch or block with this outcome did what it was there for (W50a).
pub(crate) fn is_good(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        name::SUCCESS | name::SKIPPED | name::APPROVED
    )
}

/// Whether what a block has written to the state is kept that ends with `outcome`, as the block of such a step (W53, W58).
pub(super) fn keeps_writes(opener: &StepKind, outcome: &OutcomeName) -> bool {
    match opener {
        StepKind::Block(_) => !is_failure(outcome) && outcome.as_str() != name::CANCELLED,
        _ => is_good(outcome),
    }
}

/// Where a step leads that has ended.
pub(super) enum Destination {
    /// Where a transition leads.
    Target(Target),
    /// To the end of its block, with this outcome.
    End(OutcomeName),
}

/// Where a step that ended with `outcome` leads; `None` if neither its transitions nor its block say so (W11, W50a).
pub(super) fn destination(
    definition: &Definition,
    step: &Step,
    outcome: &OutcomeName,
) -> Option<Destination> {
    let target = transition(step, outcome).or_else(|| match outcome.as_str() {
        name::SKIPPED if step.skip_if.is_some() => of_skipped(step),
        name::APPROVED if is_approval(step) => transition(step, &name::of(name::SUCCESS)),
        name::REJECTED if is_approval(step) => transition(step, &name::of(name::FAILURE)),
        _ => None,
    });
    if let Some(target) = target {
        return Some(Destination::Target(target));
    }
    match definition.block(step.block).form {
        BlockForm::Graph => None,
        BlockForm::Single => Some(Destination::End(outcome.clone())),
        BlockForm::List => in_list(step, outcome),
    }
}

fn is_approval(step: &Step) -> bool {
    matches!(step.kind, StepKind::Approval(_))
}

/// Whether no condition of a switch was true, which leads on in a list.
fn is_no_match(step: &Step, outcome: &OutcomeName) -> bool {
    matches!(step.kind, StepKind::Switch(_)) && outcome.as_str() == name::NO_MATCH
}

/// Where a skipped step without a transition for it leads (W50a).
fn of_skipped(step: &Step) -> Option<Target> {
    let success = transition(step, &name::of(name::SUCCESS));
    success.or(match &step.kind {
        StepKind::Switch(switch) => switch.default,
        StepKind::Approval(_) => transition(step, &name::of(name::APPROVED)),
        StepKind::Run(_)
        | StepKind::Wait(_)
        | StepKind::Parallel(_)
        | StepKind::Block(_)
        | StepKind::ForEach(_)
        | StepKind::Set
        | StepKind::Emit(_)
        | StepKind::Timer(_) => None,
    })
}

/// Where an outcome without a transition leads in a list: to the next step, or to the end of the list.
fn in_list(step: &Step, outcome: &OutcomeName) -> Option<Destination> {
    let is_nested = step.block != BlockIndex::ROOT;
    let terminal = match outcome.as_str() {
        _ if is_good(outcome) || is_no_match(step, outcome) => match step.next {
            Some(next) => return Some(Destination::Target(Target::Step(next))),
            None => BuiltInTerminal::Completed,
        },
        _ if is_nested => return Some(Destination::End(outcome.clone())),
        name::TIMEOUT => BuiltInTerminal::TimedOut,
        name::CANCELLED => BuiltInTerminal::Cancelled,
        _ if is_failure(outcome) => BuiltInTerminal::Failed,
        _ => return None,
    };
    Some(Destination::Target(Target::BuiltIn(terminal)))
}

/// The outcome of a nested block that ends at a built-in terminal (W51).
pub(super) fn of_terminal(terminal: BuiltInTerminal) -> OutcomeName {
    name::of(match terminal {
        BuiltInTerminal::Completed => name::SUCCESS,
        BuiltInTerminal::Failed => name::FAILURE,
        BuiltInTerminal::TimedOut => name::TIMEOUT,
        BuiltInTerminal::Cancelled => name::CANCELLED,
    })
}

/// Where `outcome` leads: exact first, then the chain of the execution-level outcomes (W11).
fn transition(step: &Step, outcome: &OutcomeName) -> Option<Target> {
    let exact = |wanted: &str| {
        let found = step
            .transitions
            .iter()
            .find(|line| line.outcome.as_str() == wanted);
        found.map(|line| line.target)
    };
    let direct = exact(outcome.as_str());
    if direct.is_some() || !outcome.is_execution_level() {
        return direct;
    }
    exact(name::EXECUTION_FAILURE).or_else(|| exact(name::FAILURE))
}
