//! Trying a step again (W12, W71).

use super::evaluation::Evaluation;
use super::failure::{self, is_failure};
use super::outcome::name;
use super::render::{DataContext, LastAttempt};
use super::step_timer::wake_timer;
use crate::definition::{RetryPolicy, StepRetry};
use crate::message::cut;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, EventKind, PayloadRef, StepTimeout, TargetResult, Work,
};
use crate::turn::{Draft, LoadedRun, Turn};

/// When a step is tried again whose attempt ended with `target_result`, in milliseconds; `None` if it is not.
pub(super) fn due_ms(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target_result: &mut TargetResult,
) -> Result<Option<u64>, StoreError> {
    let definition = run.definition.clone();
    let Some(retry) = definition.definition.retry(active.step, active.call) else {
        return Ok(None);
    };
    if !is_listed(retry, target_result) || is_final(target_result) {
        return Ok(None);
    }
    let made = AttemptsMade {
        count: active.attempt,
        started_at_ms: active.call_started_at_ms,
        not_before_ms: target_result.not_before_ms,
    };
    let next_ms = next_attempt(turn, &retry.policy, made);
    if next_ms.is_none() || (retry.non_retryable_errors.is_empty() && retry.when.is_none()) {
        return Ok(next_ms);
    }
    let output = match is_failure(&target_result.outcome) {
        true => Some(failure::error_output(turn, run, target_result)?),
        false => None,
    };
    if has_final_code(turn, retry, output)? {
        return Ok(None);
    }
    let Some(condition) = &retry.when else {
        return Ok(next_ms);
    };
    let failed = LastAttempt {
        attempt: active.attempt,
        output,
    };
    let context = DataContext::of(active.scope).with_last_attempt(failed);
    let is_true = Evaluation::with(context).is_true(turn, run, condition)?;
    let is_true = is_true.unwrap_or_else(|reason| {
        note_unevaluated(target_result, &reason);
        false
    });
    Ok(next_ms.filter(|_| is_true))
}

/// Whether the policy applies to the outcome: by default, to failures (W12) and to step attempts that timed out (W70).
fn is_listed(retry: &StepRetry, target_result: &TargetResult) -> bool {
    let outcome = &target_result.outcome;
    match &retry.on {
        Some(listed) => listed.contains(outcome),
        None => {
            let is_failure = matches!(outcome.as_str(), name::FAILURE | name::EXECUTION_FAILURE);
            let is_timeout = outcome.as_str() == name::TIMEOUT;
            is_failure || (is_timeout && target_result.cause.timeout.is_some())
        }
    }
}

/// Whether another attempt is forbidden: by the failure (A5), or because the time for all attempts is over. An outcome
/// that only `on` can list never forbids it.
fn is_final(target_result: &TargetResult) -> bool {
    if target_result.cause.timeout == Some(StepTimeout::Total) {
        return true;
    }
    match target_result.outcome.as_str() {
        name::FAILURE | name::EXECUTION_FAILURE => !target_result.is_retryable,
        _ => false,
    }
}

/// Whether the policy lists the code of the error in `output` as one that is not retried.
fn has_final_code(
    turn: &mut Turn<'_, '_>,
    retry: &StepRetry,
    output: Option<PayloadRef>,
) -> Result<bool, StoreError> {
    let Some(output) = output.filter(|_| !retry.non_retryable_errors.is_empty()) else {
        return Ok(false);
    };
    let code = failure::error_field(&turn.payload(output)?, "code");
    Ok(code.is_some_and(|code| retry.non_retryable_errors.contains(&code)))
}

/// Says in the reason why `retry.when` has no value.
fn note_unevaluated(target_result: &mut TargetResult, reason: &str) {
    let why = format!("retry.when: {reason}");
    target_result.reason = Some(cut(&match &target_result.reason {
        Some(before) => format!("{before}; {why}"),
        None => why,
    }));
}

/// The attempts at a target that have ended.
#[derive(Clone, Copy)]
pub(crate) struct AttemptsMade {
    pub(crate) count: u32,
    /// When the first one began, in milliseconds.
    pub(crate) started_at_ms: u64,
    /// The time that the last one gave for what follows, in milliseconds (W74).
    pub(crate) not_before_ms: Option<u64>,
}

/// When the next attempt is made, if one is left within the budget, which counts from the first attempt's start (W12).
/// The time that the last attempt gave replaces the delay (W74).
pub(crate) fn next_attempt(
    turn: &mut Turn<'_, '_>,
    retry: &RetryPolicy,
    made: AttemptsMade,
) -> Option<u64> {
    if made.count >= retry.max_attempts {
        return None;
    }
    let random = turn.random();
    let due_ms = made.not_before_ms.unwrap_or_else(|| {
        let delay_ms = retry.delays.delay_ms(made.count - 1, random);
        turn.now_ms().saturating_add(delay_ms)
    });
    let budget_ends_ms = retry
        .within_ms
        .map(|within| made.started_at_ms.saturating_add(within));
    budget_ends_ms
        .is_none_or(|ends_ms| due_ms <= ends_ms)
        .then_some(due_ms)
}

/// A step that is tried again.
pub(super) struct Retry {
    pub(super) active: Draft<Activation>,
    /// When, in milliseconds.
    pub(super) due_ms: u64,
}

/// Executes a step again: in this turn if its time has come.
pub(super) fn retry(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    retry: Retry,
) {
    let Retry { active, due_ms } = retry;
    match due_ms <= turn.now_ms() {
        true => retry_now(turn, queue, run, active),
        false => schedule_retry(turn, run, active, due_ms),
    }
}

/// Executes the step again, in this turn.
fn retry_now(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) {
    // What it waited for has ended, even if the run ends here.
    active.state = ActivationState::Executing;
    // The attempts at a compensation or a handler are bounded by their policies.
    if active.call.is_after_visit() || queue.count_step(turn, run, active.scope) {
        let (activation, attempt) = (active.number, begin_attempt(&mut active));
        run.note(&active, EventKind::StepRetry { attempt });
        queue.push(run.number, Work::Execute { activation });
    }
    run.put_back(active);
}

/// Sets the timer that executes the step again.
fn schedule_retry(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    due_ms: u64,
) {
    let attempt = begin_attempt(&mut active);
    run.note(&active, EventKind::RetryScheduled { attempt, due_ms });
    active.state = ActivationState::Retry { due_ms };
    turn.set_timer(wake_timer(run.at(&active), due_ms));
    run.put_back(active);
}

/// Counts the step's next attempt, which begins without polls; returns its number.
fn begin_attempt(active: &mut Activation) -> u32 {
    active.attempt += 1;
    active.polls_count = 0;
    active.attempt
}
