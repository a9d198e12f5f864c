//! An outcome comes in for an active step: poll, retry or leave it (W11–W14).

use super::advance::{Progress, Settled, Work};
use super::failure::{self, Exit};
use super::loaded::{ActivationRef, ActiveStep, Loaded};
use super::outcome::{is_retried, name, transition};
use crate::definition::{BuiltInTerminal, PollPolicy, RetryPolicy, Step, StepKind, Target};
use crate::ids::RunNumber;
use crate::plan;
use crate::store::StoreError;
use crate::tables::{ActivationState, EventKind, RunStatus, Runs, StepResult, TimerKey, TimerKind};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// Settles an active step with what its target came back with.
pub(super) fn settle(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    at: ActivationRef,
    mut settled: Settled,
) -> Outcome<()> {
    let Some(active) = ActiveStep::load(turn, at)? else {
        return Ok(());
    };
    if let ActivationState::Plan(_) = active.activation.state {
        // What came in ends an attempt on an executor; the plan settles the step when it ends.
        return plan::settle(turn, progress, at, settled);
    }
    let definition = pinned(turn, active.run.record.definition)?;
    let step = definition.definition.step(active.activation.step);
    if let (Some(poll), name::PENDING) = (poll_policy(step), settled.outcome.as_str()) {
        let polls = active.activation.polls_count;
        if polls < poll.max_attempts {
            schedule_poll(turn, active, poll);
            return Ok(());
        }
        active.note(turn, EventKind::PollExhausted { polls });
        settled.outcome = name::of(name::TIMEOUT);
        settled.reason = Some(format!("still pending at poll {polls}"));
    }
    let (attempt, started_at_ms) = (active.activation.attempt, active.activation.started_at_ms);
    if let Some(retry) = retry_policy(step)
        && settled.is_retryable
        && is_retried(&settled.outcome)
        && let Some(due_ms) = next_attempt(turn, retry, attempt, started_at_ms)
    {
        schedule_retry(turn, progress, active, due_ms);
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
            let detail = exit.detail(turn, &active.run.record)?;
            follow(at.run, target, detail)
        }
        None => Work::Finish {
            run: at.run,
            terminal: Target::BuiltIn(BuiltInTerminal::Failed),
            detail: Some(failure::no_transition(step, &settled)),
        },
    };
    leave(turn, active, settled)?;
    progress.push(work);
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
    progress: &mut Progress,
    mut active: ActiveStep,
    due_ms: u64,
) {
    let at = active.at();
    let is_due = due_ms <= turn.now_ms();
    if is_due && !progress.count_step(at.run) {
        return;
    }
    active.activation.attempt += 1;
    active.activation.polls_count = 0;
    let attempt = active.activation.attempt;
    if is_due {
        active.note(turn, EventKind::StepRetry { attempt });
        active.activation.state = ActivationState::Executing;
        active.run.record.status = RunStatus::Running;
        progress.push(at.execute());
    } else {
        active.note(turn, EventKind::RetryScheduled { attempt, due_ms });
        active.activation.state = ActivationState::Retry { due_ms };
        active.run.record.status = RunStatus::Waiting;
        turn.set_timer(wake_timer(at, due_ms));
    }
    active.put(turn);
}

/// The first poll comes after `initialDelay`, the next ones after base×f(0), base×f(1) … (W14).
fn schedule_poll(turn: &mut Turn<'_, '_>, mut active: ActiveStep, poll: &PollPolicy) {
    let random = turn.random();
    let delay_ms = match active.activation.polls_count.checked_sub(1) {
        None => poll.initial_delay_ms,
        Some(k) => poll.backoff.delay_ms(k, random),
    };
    let due_ms = turn.now_ms().saturating_add(delay_ms);
    active.activation.polls_count += 1;
    let kind = EventKind::PollScheduled {
        poll: active.activation.polls_count,
        due_ms,
    };
    active.note(turn, kind);
    turn.set_timer(wake_timer(active.at(), due_ms));
    active.activation.state = ActivationState::Poll { due_ms };
    active.run.record.status = RunStatus::Waiting;
    active.put(turn);
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

/// Takes the step out of the active ones of its run, and notes what it ended with. The run is as it was loaded.
pub(super) fn leave(
    turn: &mut Turn<'_, '_>,
    active: ActiveStep,
    settled: Settled,
) -> Result<(), StoreError> {
    let kind = EventKind::StepCompleted {
        outcome: settled.outcome.clone(),
        output: settled.output,
    };
    active.note(turn, kind);
    let ActiveStep { run, activation } = active;
    let Loaded { number, record } = run;
    // Held by nobody else, the record is changed where it is.
    drop(record);
    let completed_at_ms = turn.now_ms();
    let left = turn.edit::<Runs, _>(&number, |run| {
        run.active.retain(|other| other.number != activation.number);
        let orders = run.results.values().map(|result| result.order);
        let result = StepResult {
            outcome: settled.outcome,
            output: settled.output,
            attempts: activation.attempt,
            started_at_ms: activation.started_at_ms,
            completed_at_ms,
            order: orders.max().unwrap_or(0) + 1,
        };
        run.results.insert(activation.step, result);
    })?;
    left.expect("a run is kept while a step of it is active");
    Ok(())
}

/// Where a transition leads; `detail` says why, where the target does not.
pub(super) fn follow(run: RunNumber, target: Target, detail: Option<String>) -> Work {
    match target {
        Target::Step(step) => Work::Enter { run, step },
        Target::BuiltIn(_) | Target::Custom(_) => Work::Finish {
            run,
            terminal: target,
            detail,
        },
    }
}
