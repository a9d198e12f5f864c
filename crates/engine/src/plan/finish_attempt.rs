//! The end of an attempt on an executor: the plan ends, or a retry or another executor follows (W34, W35).

use super::execute::try_executors;
use super::execution::Execution;
use super::executor_stats::{self, AttemptResult};
use super::{end, errors};
use crate::definition::{ExecutorIndex, FallbackCondition};
use crate::run::{self, WorkQueue, outcome_name};
use crate::store::StoreError;
use crate::tables::{
    ActionRunStatus, ActionRuns, ActivationState, PlanEvent, PlanFailure, PlanState, PlanWait,
    TargetResult, Verdict,
};
use crate::turn::{Turn, TurnResult};

/// Finishes the attempt that the execution waits for.
pub(crate) fn finish_attempt(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    target_result: TargetResult,
) -> TurnResult<()> {
    let state = execution.plan_state();
    let mut state = state.expect("only a plan in progress waits for an attempt");
    if !run::is_failure(&target_result.outcome) {
        note_executor_result(turn, &mut execution, &state, &target_result)?;
        let invalidations_count = state.invalidations_count;
        return end::finish_with_result(
            turn,
            queue,
            execution,
            end::ExecutorResult {
                target_result,
                invalidations_count,
            },
        );
    }
    note_failure(turn, &mut execution, &mut state, &target_result)?;
    if let Some(due_ms) = retry_at(turn, &execution, &state, &target_result)? {
        state.attempt += 1;
        state.wait = PlanWait::Retry { due_ms };
        return defer_attempt(turn, queue, execution, state);
    }
    let attempts_count = state.attempt;
    if pass_on(turn, &mut execution, &mut state, attempts_count) {
        return end::exhaust(turn, queue, execution, state.failure);
    }
    try_executors(turn, queue, execution, state)
}

/// Records the executor's result: the plan ends with its outcome.
fn note_executor_result(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    state: &PlanState,
    target_result: &TargetResult,
) -> Result<(), StoreError> {
    let index = tried(state);
    let executor = execution.executor(index).name.clone();
    let outcome = target_result.outcome.clone();
    let (verdict, event) = if outcome.as_str() == outcome_name::SUCCESS {
        (Verdict::Success, PlanEvent::ExecutorSuccess { executor })
    } else {
        let event = PlanEvent::ExecutorOutcome { executor, outcome };
        (Verdict::Answer, event)
    };
    execution.event(event);
    let result = AttemptResult {
        is_failure: false,
        verdict,
    };
    executor_stats::note_result(turn, execution, index, result)
}

/// Records the attempt's failure.
pub(super) fn note_failure(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    state: &mut PlanState,
    target_result: &TargetResult,
) -> Result<(), StoreError> {
    let result = AttemptResult {
        is_failure: true,
        verdict: if is_business_result(turn, state)? {
            Verdict::Answer
        } else {
            Verdict::Failure
        },
    };
    executor_stats::note_result(turn, execution, tried(state), result)?;
    let output = match target_result.output {
        Some(output) => Some(turn.payload(output)?),
        None => None,
    };
    state.failure = Some(PlanFailure {
        code: errors::code(&target_result.outcome, output.as_ref()),
        output: target_result.output,
        // If an action is missing, the plan may still be executed again.
        is_retryable: target_result.is_retryable || !errors::is_retried(&target_result.outcome),
        not_before_ms: target_result.not_before_ms,
    });
    Ok(())
}

/// Fails over to the next executor; true if the plan ends with this executor's error instead (W36).
///
/// An executor with `attempts_count` attempts has failed; one without attempts was skipped.
pub(super) fn pass_on(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    state: &mut PlanState,
    attempts_count: u32,
) -> bool {
    if let Some(failure) = state.failure.as_ref().filter(|_| attempts_count > 0) {
        let event = PlanEvent::ExecutorExhausted {
            executor: execution.executor(tried(state)).name.clone(),
            attempts: attempts_count,
            code: failure.code.clone(),
        };
        execution.event(event);
        let fallback = execution.plan().fallback.as_ref();
        if fallback.is_some_and(|fallback| fallback.condition == FallbackCondition::AnyError) {
            return true;
        }
    }
    state.position += 1;
    state.attempt = 1;
    state.started_at_ms = turn.now_ms();
    false
}

/// Whether the attempt returned a business result, of any outcome (W31).
fn is_business_result(turn: &mut Turn<'_, '_>, state: &PlanState) -> Result<bool, StoreError> {
    let PlanWait::Action(number) = state.wait else {
        return Ok(false);
    };
    let action_run = turn.get::<ActionRuns>(&number)?;
    Ok(action_run.is_some_and(|record| record.status == ActionRunStatus::Completed))
}

/// When the same executor is tried again, in milliseconds; `None` when it is not (W12, W35).
fn retry_at(
    turn: &mut Turn<'_, '_>,
    execution: &Execution<'_>,
    state: &PlanState,
    target_result: &TargetResult,
) -> Result<Option<u64>, StoreError> {
    let index = tried(state);
    let classes = execution.plan().errors.as_ref();
    let code = state.failure.as_ref().map(|failure| failure.code.as_str());
    let is_retryable = target_result.is_retryable
        && errors::is_retried(&target_result.outcome)
        && code.is_none_or(|code| errors::is_retryable(classes, code));
    let policy = execution.executor(index).retry.as_ref();
    let Some(policy) = policy.filter(|_| is_retryable) else {
        return Ok(None);
    };
    let made = run::AttemptsMade {
        count: state.attempt,
        started_at_ms: state.started_at_ms,
        not_before_ms: target_result.not_before_ms,
    };
    let due_ms = run::next_attempt(turn, policy, made);
    // Waiting is useless if the open breaker would skip the attempt.
    let open_until_ms = executor_stats::open_until_ms(turn, execution, index)?;
    Ok(due_ms.filter(|due_ms| open_until_ms.is_none_or(|until_ms| until_ms <= *due_ms)))
}

/// Delays the executor's next attempt until `state` says, or makes it immediately if that time has come.
fn defer_attempt(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    state: PlanState,
) -> TurnResult<()> {
    let PlanWait::Retry { due_ms } = state.wait else {
        panic!("only a retry is put off");
    };
    let event = PlanEvent::ExecutorRetry {
        executor: execution.executor(tried(&state)).name.clone(),
        attempt: state.attempt,
        due_ms,
    };
    execution.event(event);
    if due_ms <= turn.now_ms() {
        return try_executors(turn, queue, execution, state);
    }
    let at = execution.run.at(&execution.active);
    turn.set_timer(run::wake_timer(at, due_ms));
    execution.put(ActivationState::Plan(Box::new(state)));
    Ok(())
}

/// The executor that an attempt is made on.
fn tried(state: &PlanState) -> ExecutorIndex {
    state
        .executor()
        .expect("an attempt is made on an executor of the order")
}
