//! What an active step waits for.

use super::plan;
use crate::samples;
use flotilla_engine::ids::{ActionRunNumber, RunNumber, ScopeNumber};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActivationState, Branches, DefinitionNumber, IterationResult, Iterations, JoinDecision,
    OpenApproval, SignalWait, TaskError, UncheckedOutput,
};

/// One of each kind.
pub(super) fn states() -> Vec<ActivationState> {
    vec![
        ActivationState::Executing,
        ActivationState::Action(ActionRunNumber(9)),
        ActivationState::Signal(SignalWait {
            signal_type: samples::signal_type(),
            deadline_at_ms: Some(5_000),
        }),
        ActivationState::Approval(OpenApproval {
            approvals_count: 1,
            deadline_at_ms: Some(5_000),
        }),
        ActivationState::Child(RunNumber(8)),
        ActivationState::ChildInput {
            definition: DefinitionNumber(4),
        },
        ActivationState::OutputCheck(UncheckedOutput {
            outcome: samples::outcome(),
            result: Some(samples::payload()),
            output: None,
            not_before_ms: Some(9_000),
        }),
        ActivationState::Retry { due_ms: 6_000 },
        ActivationState::Poll { due_ms: 7_000 },
        ActivationState::Timer { due_ms: 8_000 },
        ActivationState::Delay { due_ms: 8_500 },
        ActivationState::Plan(plan::state()),
        ActivationState::Branches(Branches {
            first_scope: ScopeNumber(3),
            begun_count: 3,
            ended_count: 2,
            good_count: 1,
            good: 2,
            skipped_count: 0,
            decision: Some(JoinDecision::TimedOut),
            has_waited: true,
            steps_since_wait: 3,
        }),
        ActivationState::Iterations(Iterations {
            first_scope: ScopeNumber(3),
            total_count: 5,
            begun_count: 3,
            ended_count: 2,
            good_count: 1,
            failed_count: 1,
            collected_bytes: 20,
            is_too_large: false,
            resumable_count: 1,
            next_resumable: 2,
            is_begin_queued: true,
            is_stopped: false,
            is_timed_out: true,
            has_waited: true,
            steps_since_wait: 3,
        }),
    ]
}

/// A failed iteration.
pub(super) fn item_result() -> IterationResult {
    IterationResult {
        outcome: samples::outcome(),
        output: Some(Json::from_checked("{\"n\":1}")),
        error: Some(TaskError {
            code: "lost".to_owned(),
            message: "none left".to_owned(),
        }),
        is_retryable: true,
        has_written: true,
    }
}
