//! What an active step waits for.

use super::{Row, plan, row, scope_id, target_result};
use crate::samples;
use flotilla_engine::definition::{CallRole, StepIndex};
use flotilla_engine::ids::{ActionRunNumber, RunNumber, ScopeNumber};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    Activation, ActivationEnding, ActivationState, ActivationTimeouts, Activations, Branches,
    DefinitionNumber, Dropped, IterationResult, Iterations, JoinDecision, OpenApproval,
    QueuedChild, ResumableSteps, SignalWait, TaskError, UncheckedOutput, UndoOwner, Undoing,
    Undone,
};

/// An activation in each state that there is.
pub(super) fn rows() -> Vec<Row> {
    let activation = |(number, state)| Activation {
        number,
        scope: ScopeNumber(300),
        step: StepIndex(1),
        visit: 2,
        call: CallRole::Fallback,
        attempt: 2,
        earlier_attempts_count: 3,
        polls_count: 1,
        started_at_ms: 1_000,
        call_started_at_ms: 1_500,
        timeouts: timeouts().into(),
        compensations_before: 4,
        undone: Some(Box::new(Undone {
            owner: UndoOwner::Step(3),
            scope: scope_id(),
        })),
        is_call_open: true,
        ending: ending().into(),
        input: samples::payload(),
        state,
    };
    let states = (1..).zip(states()).map(activation);
    let rows = states.map(|active| row::<Activations>((RunNumber(7), active.number), active));
    let mut rows: Vec<Row> = rows.collect();
    let stopped = activation((1, ActivationState::Child(RunNumber(9))));
    let key = (RunNumber(7), ScopeNumber(300), StepIndex(1));
    rows.push(row::<ResumableSteps>(key, stopped));
    rows
}

fn timeouts() -> ActivationTimeouts {
    ActivationTimeouts {
        total_ends_at_ms: Some(61_000),
        attempt_ends_at_ms: Some(2_500),
        queued_child: Some(QueuedChild {
            attempt_left_ms: Some(40),
        }),
    }
}

fn ending() -> ActivationEnding {
    ActivationEnding {
        undoing: Some(Undoing {
            dropped: Dropped::Failed,
            retry_due_ms: Some(9),
            target_result: target_result(),
        }),
        cancelled_with: Some(ScopeNumber(9)),
        timeout_result: Some(target_result()),
    }
}

/// One of each kind.
fn states() -> Vec<ActivationState> {
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
            approvers: vec![samples::approver()],
        }),
        ActivationState::Child(RunNumber(8)),
        ActivationState::ChildInput {
            definition: DefinitionNumber(4),
        },
        ActivationState::OutputCheck(Box::new(UncheckedOutput {
            outcome: samples::outcome(),
            result: Some(samples::payload()),
            output: None,
            not_before_ms: Some(9_000),
            state_patch: Some(Box::new(samples::payload())),
        })),
        ActivationState::Retry { due_ms: 6_000 },
        ActivationState::Poll { due_ms: 7_000 },
        ActivationState::Timer { due_ms: 8_000 },
        ActivationState::Delay { due_ms: 8_500 },
        ActivationState::Plan(Box::new(plan::state())),
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
            collects_outputs: true,
            is_sequential: false,
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
