//! An outcome comes in for an active step: poll, retry or leave it (W11–W14).

use super::advance::WorkQueue;
use super::failure::{self, Exit};
use super::loaded::{ActivationRef, LoadedRun};
use super::outcome::{is_retried, name, transition};
use crate::definition::{BuiltInTerminal, PollPolicy, RetryPolicy, Step, StepKind, Target};
use crate::plan;
use crate::tables::{
    Activation, ActivationState, EventKind, Settled, StepResult, StepResults, TimerKey, TimerKind,
    Work,
};
use crate::turn::{Draft, Outcome, Turn};

/// Settles an active step with what its target came back with. What comes from anything that the step does not wait
/// for, or no longer, changes nothing.
pub(super) fn settle(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    (activation, mut settled): (u32, Settled),
) -> Outcome<()> {
    let Some(active) = run.take(turn, activation)? else {
        return Ok(());
    };
    if active.state.awaits() != settled.from {
        run.put_back(active);
        return Ok(());
    }
    if let ActivationState::Plan(_) = active.state {
        // What came in ends an attempt on an executor; the plan settles the step when it ends.
        return plan::settle(turn, queue, run, (active, settled));
    }
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    if let (Some(poll), name::PENDING) = (poll_policy(step), settled.outcome.as_str()) {
        let polls = active.polls_count;
        if polls < poll.max_attempts {
            schedule_poll(turn, run, active, poll);
            return Ok(());
        }
        run.note(&active, EventKind::PollExhausted { polls });
        settled.outcome = name::of(name::TIMEOUT);
        settled.reason = Some(format!("still pending at poll {polls}"));
    }
    if let Some(retry) = retry_policy(step)
        && settled.is_retryable
        && is_retried(&settled.outcome)
        && let Some(due_ms) = next_attempt(turn, retry, active.attempt, active.started_at_ms)
    {
        schedule_retry(turn, queue, run, (active, due_ms));
        return Ok(());
    }
    let work = match transition(step, &settled.outcome) {
        Some(target) => {
            let exit = Exit {
                definition: &definition.definition,
                step,
                settled: &settled,
                target,
            };
            let detail = exit.detail(turn, run)?;
            follow(target, detail)
        }
        None => Work::Finish {
            terminal: Target::BuiltIn(BuiltInTerminal::Failed),
            detail: Some(failure::no_transition(step, &settled)),
        },
    };
    leave(turn, run, &active, settled);
    queue.push(run.number, work);
    Ok(())
}

fn retry_policy(step: &Step) -> Option<&RetryPolicy> {
    match &step.kind {
        StepKind::Run(run_step) => run_step.retry.as_ref(),
        StepKind::Wait(_) => None,
    }
}

fn poll_policy(step: &Step) -> Option<&PollPolicy> {
    match &step.kind {
        StepKind::Run(run_step) => run_step.poll.as_ref(),
        StepKind::Wait(_) => None,
    }
}

/// When the attempt after `attempt` is made, if one is left within the budget, which counts from the
/// first attempt's start (W12).
pub(crate) fn next_attempt(
    turn: &mut Turn<'_, '_>,
    retry: &RetryPolicy,
    attempt: u32,
    started_at_ms: u64,
) -> Option<u64> {
    if attempt >= retry.max_attempts {
        return None;
    }
    let random = turn.random();
    let due_ms = turn
        .now_ms()
        .saturating_add(retry.backoff.delay_ms(attempt - 1, random));
    let budget_ends_ms = retry
        .within_ms
        .map(|within| started_at_ms.saturating_add(within));
    budget_ends_ms
        .is_none_or(|ends_ms| due_ms <= ends_ms)
        .then_some(due_ms)
}

fn schedule_retry(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    (mut active, due_ms): (Draft<Activation>, u64),
) {
    let is_due = due_ms <= turn.now_ms();
    if is_due && !queue.count_step(turn, run) {
        run.put_back(active);
        return;
    }
    active.attempt += 1;
    active.polls_count = 0;
    let (activation, attempt) = (active.number, active.attempt);
    if is_due {
        run.note(&active, EventKind::StepRetry { attempt });
        active.state = ActivationState::Executing;
        queue.push(run.number, Work::Execute { activation });
    } else {
        run.note(&active, EventKind::RetryScheduled { attempt, due_ms });
        active.state = ActivationState::Retry { due_ms };
        turn.set_timer(wake_timer(run.at(&active), due_ms));
    }
    run.put_back(active);
}

/// The first poll comes after `initialDelay`, the next ones after base×f(0), base×f(1) … (W14).
fn schedule_poll(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    poll: &PollPolicy,
) {
    let random = turn.random();
    let delay_ms = match active.polls_count.checked_sub(1) {
        None => poll.initial_delay_ms,
        Some(k) => poll.backoff.delay_ms(k, random),
    };
    let due_ms = turn.now_ms().saturating_add(delay_ms);
    active.polls_count += 1;
    let kind = EventKind::PollScheduled {
        poll: active.polls_count,
        due_ms,
    };
    run.note(&active, kind);
    turn.set_timer(wake_timer(run.at(&active), due_ms));
    active.state = ActivationState::Poll { due_ms };
    run.put_back(active);
}

/// The timer of a retry or poll.
pub(crate) fn wake_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StepWake,
        due_ms,
        subject: at.run.0,
        detail: at.activation,
    }
}

/// The run leaves the step, and notes what it ended with.
pub(super) fn leave(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    settled: Settled,
) {
    let kind = EventKind::StepCompleted {
        outcome: settled.outcome.clone(),
        output: settled.output,
    };
    run.note(active, kind);
    run.leave(active);
    run.record.left_count += 1;
    run.record.last_left = Some(active.step);
    let result = StepResult {
        outcome: settled.outcome,
        output: settled.output,
        attempts: active.attempt,
        started_at_ms: active.started_at_ms,
        completed_at_ms: turn.now_ms(),
        order: run.record.left_count,
    };
    turn.put::<StepResults>(&(run.number, active.step), result);
}

/// Where a transition leads; `detail` says why, where the target does not.
pub(super) fn follow(target: Target, detail: Option<String>) -> Work {
    match target {
        Target::Step(step) => Work::Enter { step },
        Target::BuiltIn(_) | Target::Custom(_) => Work::Finish {
            terminal: target,
            detail,
        },
    }
}
