//! What an active step waits for.

use super::plan;
use crate::samples;
use flotilla_engine::ids::{ActionRunNumber, RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    ActivationState, Branches, DefinitionNumber, JoinDecision, UncheckedOutput,
};

/// One of each kind.
pub(super) fn states() -> Vec<ActivationState> {
    vec![
        ActivationState::Executing,
        ActivationState::Action(ActionRunNumber(9)),
        ActivationState::Signal {
            deadline_at_ms: Some(5_000),
        },
        ActivationState::Child(RunNumber(8)),
        ActivationState::ChildInput {
            definition: DefinitionNumber(4),
        },
        ActivationState::OutputCheck(UncheckedOutput {
            outcome: samples::outcome(),
            result: Some(samples::payload()),
            output: None,
        }),
        ActivationState::Retry { due_ms: 6_000 },
        ActivationState::Poll { due_ms: 7_000 },
        ActivationState::Timer { due_ms: 8_000 },
        ActivationState::Plan(plan::state()),
        ActivationState::Branches(Branches {
            first_scope: ScopeNumber(3),
            begun_count: 3,
            ended_count: 2,
            good_count: 1,
            skipped_count: 0,
            decision: Some(JoinDecision::First(1)),
            has_waited: true,
            steps_since_wait: 3,
        }),
    ]
}
