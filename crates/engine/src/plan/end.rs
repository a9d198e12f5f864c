//! An execution ends: with an executor's answer, a cached result, the fallback or a failure (W34, W36).

use super::cache;
use super::execution::Execution;
use crate::json::Json;
use crate::run::{WorkQueue, error_in, outcome_name as name, payload};
use crate::store::StoreError;
use crate::tables::{ActivationState, Awaited, PlanEvent, PlanFailure, Settled, Work};
use crate::turn::{Outcome, Turn};

/// The outcome of a fallback, where the step has a transition for it (W36).
const EXHAUSTED: &str = "exhausted";

/// What an executor answered.
pub(super) struct Answer {
    /// The plan's outcome.
    pub(super) settled: Settled,
    /// See [`PlanState::invalidations_count`](crate::tables::PlanState).
    pub(super) invalidations_count: Option<u64>,
}

/// An executor's answer is the plan's; a success is cached (W37).
pub(super) fn answer(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    execution: Execution<'_>,
    answer: Answer,
) -> Outcome<()> {
    let settled = answer.settled;
    if settled.outcome.as_str() == name::SUCCESS
        && let (Some(count), Some(output)) = (answer.invalidations_count, settled.output)
    {
        cache::store(turn, &execution, count, output)?;
    }
    leave(queue, execution, settled);
    Ok(())
}

/// A cached result is the plan's.
pub(super) fn give(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    output: Json,
) {
    let settled = stored(turn, &mut execution, name::SUCCESS, output);
    leave(queue, execution, settled);
}

/// No executor is left, or none is tried any more: the fallback if there is one, else a failure.
pub(super) fn exhaust(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    failure: Option<PlanFailure>,
) -> Outcome<()> {
    let reason = match &failure {
        Some(failure) => in_words(turn, failure)?,
        None => Some(format!(
            "expected an executor of plan \"{}\" to take the call, but all were skipped",
            execution.plan().name
        )),
    };
    let fallback = execution.plan().fallback.as_ref();
    let fallback = fallback.map(|fallback| Json::from_checked(fallback.value.clone()));
    let settled = match (fallback, failure) {
        (Some(value), _) => {
            let outcome = fallback_outcome(&execution);
            let event = PlanEvent::Fallback {
                outcome: name::of(outcome),
            };
            execution.event(event);
            stored(turn, &mut execution, outcome, value)
        }
        (None, Some(failure)) => Settled {
            from: Awaited::Nothing,
            outcome: name::of(name::FAILURE),
            output: failure.output,
            reason: None,
            is_retryable: failure.is_retryable,
        },
        (None, None) => {
            let output = Json::error(EXHAUSTED, reason.as_deref().unwrap_or_default());
            stored(turn, &mut execution, name::FAILURE, output)
        }
    };
    leave(queue, execution, Settled { reason, ..settled });
    Ok(())
}

/// What the last executor's error was.
fn in_words(turn: &mut Turn<'_, '_>, failure: &PlanFailure) -> Result<Option<String>, StoreError> {
    let error = match failure.output {
        Some(output) => error_in(&*payload(turn, output)?),
        None => None,
    };
    Ok(error.map(|error| error.in_words(&name::of(name::FAILURE))))
}

fn fallback_outcome(execution: &Execution<'_>) -> &'static str {
    let mut transitions = execution.step().transitions.iter();
    if transitions.any(|line| line.outcome.as_str() == EXHAUSTED) {
        EXHAUSTED
    } else {
        name::SUCCESS
    }
}

/// What the step settles with, its output stored with the run.
fn stored(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    outcome: &str,
    output: Json,
) -> Settled {
    Settled {
        from: Awaited::Nothing,
        outcome: name::of(outcome),
        output: Some(execution.run.store_payload(turn, output)),
        reason: None,
        is_retryable: true,
    }
}

/// The step settles with what the plan came back with.
fn leave(queue: &mut WorkQueue, execution: Execution<'_>, mut settled: Settled) {
    settled.from = Awaited::Nothing;
    let activation = execution.active.number;
    let run = execution.put(ActivationState::Executing);
    let work = Work::Settle {
        activation,
        settled,
    };
    queue.push(run.number, work);
}
