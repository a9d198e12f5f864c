//! The end of a plan's execution: an executor's result, a cached result, the fallback or a failure (W34, W36).

use super::cache;
use super::execution::Execution;
use crate::json::Json;
use crate::run::{WorkQueue, error_in, outcome_name as name};
use crate::store::StoreError;
use crate::tables::{ActivationState, Awaited, PlanEvent, PlanFailure, TargetResult, Work};
use crate::turn::{Turn, TurnResult};

/// The outcome of a fallback, where the step has a transition for it (W36).
const EXHAUSTED: &str = "exhausted";

/// The result of an executor.
pub(super) struct ExecutorResult {
    /// The plan's outcome.
    pub(super) target_result: TargetResult,
    /// See [`PlanState::invalidations_count`](crate::tables::PlanState).
    pub(super) invalidations_count: Option<u64>,
}

/// Ends the plan with an executor's result; a success is cached (W37).
pub(super) fn finish_with_result(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    execution: Execution<'_>,
    executor_result: ExecutorResult,
) -> TurnResult<()> {
    let target_result = executor_result.target_result;
    if target_result.outcome.as_str() == name::SUCCESS
        && let (Some(count), Some(output)) =
            (executor_result.invalidations_count, target_result.output)
    {
        cache::store(turn, &execution, count, output)?;
    }
    leave(queue, execution, target_result);
    Ok(())
}

/// Ends the plan with a cached result.
pub(super) fn finish_with_cached(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    output: Json,
) {
    let target_result = stored(turn, &mut execution, name::SUCCESS, output);
    leave(queue, execution, target_result);
}

/// No executor remains, or no further one is tried: uses the fallback if there is one, else fails.
pub(super) fn exhaust(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    failure: Option<PlanFailure>,
) -> TurnResult<()> {
    let reason = match &failure {
        Some(failure) => describe(turn, failure)?,
        None => Some(format!(
            "expected an executor of plan \"{}\" to take the call, but all were skipped",
            execution.plan().name
        )),
    };
    let fallback = execution.plan().fallback.as_ref();
    let fallback = fallback.map(|fallback| Json::from_checked(fallback.value.clone()));
    let target_result = match (fallback, failure) {
        (Some(value), _) => {
            let outcome = fallback_outcome(&execution);
            let event = PlanEvent::Fallback {
                outcome: name::of(outcome),
            };
            execution.event(event);
            stored(turn, &mut execution, outcome, value)
        }
        (None, Some(failure)) => TargetResult {
            output: failure.output,
            is_retryable: failure.is_retryable,
            not_before_ms: failure.not_before_ms,
            ..TargetResult::of_engine(name::of(name::FAILURE))
        },
        (None, None) => {
            let output = Json::error(EXHAUSTED, reason.as_deref().unwrap_or_default());
            stored(turn, &mut execution, name::FAILURE, output)
        }
    };
    leave(
        queue,
        execution,
        TargetResult {
            reason,
            ..target_result
        },
    );
    Ok(())
}

/// Describes the last executor's error.
fn describe(turn: &mut Turn<'_, '_>, failure: &PlanFailure) -> Result<Option<String>, StoreError> {
    let error = match failure.output {
        Some(output) => error_in(&turn.payload(output)?),
        None => None,
    };
    Ok(error.map(|error| error.describe(&name::of(name::FAILURE))))
}

fn fallback_outcome(execution: &Execution<'_>) -> &'static str {
    let mut transitions = execution.step().transitions.iter();
    if transitions.any(|line| line.outcome.as_str() == EXHAUSTED) {
        EXHAUSTED
    } else {
        name::SUCCESS
    }
}

/// The step's target result, with its output stored with the run.
fn stored(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    outcome: &str,
    output: Json,
) -> TargetResult {
    TargetResult {
        output: Some(execution.run.store_payload(turn, output)),
        is_retryable: true,
        ..TargetResult::of_engine(name::of(outcome))
    }
}

/// Finishes the step with the plan's result.
fn leave(queue: &mut WorkQueue, execution: Execution<'_>, mut target_result: TargetResult) {
    target_result.from = Awaited::Nothing;
    let activation = execution.active.number;
    let run = execution.put(ActivationState::Executing);
    let work = Work::FinishStep {
        activation,
        target_result,
    };
    queue.push(run.number, work);
}
