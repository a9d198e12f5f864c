//! Outcomes: their names, and where they lead (W11).

use crate::definition::{Step, Target};
use crate::ids::OutcomeName;

/// The outcomes that the engine itself knows.
pub(crate) mod name {
    use crate::ids::OutcomeName;

    pub(crate) const SUCCESS: &str = "success";
    pub(crate) const FAILURE: &str = "failure";
    pub(crate) const TIMEOUT: &str = "timeout";
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

/// Where `outcome` leads: exact first, then the chain of the execution-level outcomes (W11).
pub(crate) fn transition(step: &Step, outcome: &OutcomeName) -> Option<Target> {
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
