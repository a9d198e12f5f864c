//! An attempt on an executor ends: the plan, too, or a retry or another executor follows (W34, W35).

use super::execute::try_executors;
use super::execution::Execution;
use super::tally::{self, AttemptResult};
use super::{end, errors};
use crate::definition::{ExecutorIndex, FallbackCondition};
use crate::run::{self, LoadedRun, WorkQueue, outcome_name, payload};
use crate::store::StoreError;
use crate::tables::{
    ActionRunStatus, ActionRuns, Activation, ActivationState, PlanEvent, PlanFailure, PlanState,
    PlanWait, Settled, Verdict,
};
use crate::turn::{Draft, Outcome, Turn};

/// Settles the attempt that the execution waits for.
pub(crate) fn settle(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    (active, settled): (Draft<Activation>, Settled),
) -> Outcome<()> {
    let mut execution = Execution::new(run, active);
    let state = execution.plan_state();
    let mut state = state.expect("only a plan that is under way waits for an attempt");
    if !run::is_failure(&settled.outcome) {
        note_answer(turn, &mut execution, &state, &settled)?;
        let invalidations_count = state.invalidations_count;
        return end::answer(
            turn,
            queue,
            execution,
            end::Answer {
                settled,
                invalidations_count,
            },
        );
    }
    note_failure(turn, &mut execution, &mut state, &settled)?;
    if let Some(due_ms) = retry_at(turn, &execution, &state, &settled)? {
        state.attempt += 1;
        state.wait = PlanWait::Retry { due_ms };
        return put_off(turn, queue, execution, state);
    }
    let attempts_count = state.attempt;
    if pass_on(turn, &mut execution, &mut state, attempts_count) {
        return end::exhaust(turn, queue, execution, state.failure);
    }
    try_executors(turn, queue, execution, state)
}

/// Notes that the executor has answered: the plan ends with its outcome.
fn note_answer(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    state: &PlanState,
    settled: &Settled,
) -> Result<(), StoreError> {
    let index = tried(state);
    let executor = execution.executor(index).name.clone();
    let outcome = settled.outcome.clone();
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
    tally::note_result(turn, execution, index, result)
}

/// Notes that the attempt has failed, and how.
pub(super) fn note_failure(
    turn: &mut Turn<'_, '_>,
    execution: &mut Execution<'_>,
    state: &mut PlanState,
    settled: &Settled,
) -> Result<(), StoreError> {
    let result = AttemptResult {
        is_failure: true,
        verdict: if has_answered(turn, state)? {
            Verdict::Answer
        } else {
            Verdict::Failure
        },
    };
    tally::note_result(turn, execution, tried(state), result)?;
    let output = match settled.output {
        Some(output) => Some(payload(turn, output)?),
        None => None,
    };
    state.failure = Some(PlanFailure {
        code: errors::code(&settled.outcome, output.as_deref()),
        output: settled.output,
        // An action that is not there says nothing against executing the plan again.
        is_retryable: settled.is_retryable || !errors::is_retried(&settled.outcome),
    });
    Ok(())
}

/// Passes on to the next executor; true when the plan ends with this one's error instead (W36).
///
/// An executor that made `attempts_count` attempts has failed; one that made none was skipped.
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

/// Whether a business result came back of the attempt, whatever it was (W31).
fn has_answered(turn: &mut Turn<'_, '_>, state: &PlanState) -> Result<bool, StoreError> {
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
    settled: &Settled,
) -> Result<Option<u64>, StoreError> {
    let index = tried(state);
    let classes = execution.plan().errors.as_ref();
    let code = state.failure.as_ref().map(|failure| failure.code.as_str());
    let is_retryable = settled.is_retryable
        && errors::is_retried(&settled.outcome)
        && code.is_none_or(|code| errors::is_retryable(classes, code));
    let Some(policy) = execution.executor(index).retry.filter(|_| is_retryable) else {
        return Ok(None);
    };
    let due_ms = run::next_attempt(turn, &policy, state.attempt, state.started_at_ms);
    // There is no use in waiting for an attempt that an open breaker would skip.
    let open_until_ms = tally::open_until_ms(turn, execution, index)?;
    Ok(due_ms.filter(|due_ms| open_until_ms.is_none_or(|until_ms| until_ms <= *due_ms)))
}

/// Puts the executor's next attempt off until `state` says, or makes it at once when that is now.
fn put_off(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    mut execution: Execution<'_>,
    state: PlanState,
) -> Outcome<()> {
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
    execution.put(ActivationState::Plan(state));
    Ok(())
}

/// The executor that an attempt is made on.
fn tried(state: &PlanState) -> ExecutorIndex {
    state
        .executor()
        .expect("an attempt is made on an executor of the order")
}
