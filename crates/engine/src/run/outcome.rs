//! Outcomes: their names, and where they lead (W11).

use super::failure::is_failure;
use crate::definition::{BlockForm, BuiltInTerminal, Definition, Step, Target};
use crate::ids::OutcomeName;

/// The outcomes that the engine itself knows.
pub(crate) mod name {
    use crate::ids::OutcomeName;

    pub(crate) const SUCCESS: &str = "success";
    pub(crate) const SKIPPED: &str = "skipped";
    pub(crate) const APPROVED: &str = "approved";
    pub(crate) const FAILURE: &str = "failure";
    pub(crate) const TIMEOUT: &str = "timeout";
    pub(crate) const CANCELLED: &str = "cancelled";
    pub(crate) const PENDING: &str = "pending";
    pub(crate) const TARGET_NOT_FOUND: &str = "target_not_found";
    pub(crate) const TARGET_DISABLED: &str = "target_disabled";
    pub(crate) const EXECUTION_FAILURE: &str = "execution_failure";

    /// One of the constants above as a typed name.
    pub(crate) fn of(text: &str) -> OutcomeName {
        OutcomeName::new(text).expect("the engine's own outcomes are well-formed")
    }
}

/// Whether only the engine may give this outcome (W11).
pub(crate) fn is_reserved(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        name::TARGET_NOT_FOUND | name::TARGET_DISABLED | name::EXECUTION_FAILURE
    )
}

/// Whether the step is tried again after this outcome (W12).
pub(crate) fn is_retried(outcome: &OutcomeName) -> bool {
    matches!(outcome.as_str(), name::FAILURE | name::EXECUTION_FAILURE)
}

/// Whether a step with this outcome did what it was there for (W50a).
fn is_good(outcome: &OutcomeName) -> bool {
    matches!(
        outcome.as_str(),
        name::SUCCESS | name::SKIPPED | name::APPROVED
    )
}

/// Where a step that ended with `outcome` leads; `None` if neither its transitions nor its block say so (W11, W50a).
pub(crate) fn destination(
    definition: &Definition,
    step: &Step,
    outcome: &OutcomeName,
) -> Option<Target> {
    let direct = transition(step, outcome);
    match definition.block(step.block).form {
        BlockForm::Graph => direct,
        BlockForm::List => direct.or_else(|| in_list(step, outcome)),
    }
}

/// Where an outcome without a transition leads in a list: to the next step, or to the end of the run.
fn in_list(step: &Step, outcome: &OutcomeName) -> Option<Target> {
    let terminal = match outcome.as_str() {
        _ if is_good(outcome) => match step.next {
            Some(next) => return Some(Target::Step(next)),
            None => BuiltInTerminal::Completed,
        },
        name::TIMEOUT => BuiltInTerminal::TimedOut,
        name::CANCELLED => BuiltInTerminal::Cancelled,
        _ if is_failure(outcome) => BuiltInTerminal::Failed,
        _ => return None,
    };
    Some(Target::BuiltIn(terminal))
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
    if direct.is_some() || !is_reserved(outcome) {
        return direct;
    }
    exact(name::EXECUTION_FAILURE).or_else(|| exact(name::FAILURE))
}
