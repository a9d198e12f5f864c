//! An outcome comes in for an active step: poll, retry or leave it (W11–W14).

use super::advance::{Progress, Settled, Work};
use super::open::load;
use super::outcome::{is_retried, name, transition};
use crate::definition::{BuiltInTerminal, PollPolicy, RetryPolicy, Step, StepKind, Target};
use crate::ids::RunNumber;
use crate::tables::{
    Activation, ActivationState, Event, EventKind, RunRecord, RunStatus, Runs, StepResult,
    TimerKey, TimerKind,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// Settles `activation` of a run with what its target came back with.
pub(super) fn settle(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, activation): (RunNumber, u32),
    mut settled: Settled,
) -> Outcome<()> {
    let run = load(turn, number)?;
    let Some(active) = run.activation(activation).cloned() else {
        return Ok(());
    };
    let definition = pinned(turn, run.definition)?;
    let step = definition.definition.step(active.step);
    if let (Some(poll), name::PENDING) = (poll_policy(step), settled.outcome.as_str()) {
        if active.polls_count < poll.max_attempts {
            return schedule_poll(turn, (number, run), &active, poll);
        }
        let kind = EventKind::PollExhausted {
            polls: active.polls_count,
        };
        turn.event(
            number,
            Event {
                step: Some(active.step),
                kind,
            },
        );
        settled.outcome = name::of(name::TIMEOUT);
    }
    if let Some(retry) = retry_policy(step)
        && settled.is_retryable
        && is_retried(&settled.outcome)
        && let Some(due_ms) = next_attempt(turn, &active, retry)
    {
        return schedule_retry(turn, progress, (number, run), (&active, due_ms));
    }
    leave(turn, progress, (number, run), (step, &active, settled))
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

/// When the next attempt is made, if one is left within the budget (W12).
fn next_attempt(turn: &mut Turn<'_, '_>, active: &Activation, retry: &RetryPolicy) -> Option<u64> {
    if active.attempt >= retry.max_attempts {
        return None;
    }
    let random = turn.random();
    let due_ms = turn
        .now_ms()
        .saturating_add(retry.backoff.delay_ms(active.attempt - 1, random));
    let budget_ends_ms = retry
        .within_ms
        .map(|within| active.started_at_ms.saturating_add(within));
    budget_ends_ms
        .is_none_or(|ends_ms| due_ms <= ends_ms)
        .then_some(due_ms)
}

fn schedule_retry(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (active, due_ms): (&Activation, u64),
) -> Outcome<()> {
    let attempt = active.attempt + 1;
    let is_due = due_ms <= turn.now_ms();
    let kind = if is_due {
        EventKind::StepRetry { attempt }
    } else {
        EventKind::RetryScheduled { attempt, due_ms }
    };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    let changed = Activation {
        attempt,
        polls_count: 0,
        state: if is_due {
            ActivationState::Executing
        } else {
            ActivationState::Retry { due_ms }
        },
        ..active.clone()
    };
    if is_due {
        progress.push(Work::Execute {
            run: number,
            activation: active.number,
        });
    } else {
        turn.set_timer(wake_timer(number, active.number, due_ms));
    }
    park(&mut run, changed, is_due);
    turn.put::<Runs>(&number, run);
    Ok(())
}

/// The first poll comes after `initialDelay`, the next ones after base×f(0), base×f(1) … (W14).
fn schedule_poll(
    turn: &mut Turn<'_, '_>,
    (number, mut run): (RunNumber, RunRecord),
    active: &Activation,
    poll: &PollPolicy,
) -> Outcome<()> {
    let random = turn.random();
    let delay_ms = match active.polls_count.checked_sub(1) {
        None => poll.initial_delay_ms,
        Some(k) => poll.backoff.delay_ms(k, random),
    };
    let due_ms = turn.now_ms().saturating_add(delay_ms);
    let polls_count = active.polls_count + 1;
    let kind = EventKind::PollScheduled {
        poll: polls_count,
        due_ms,
    };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    turn.set_timer(wake_timer(number, active.number, due_ms));
    let state = ActivationState::Poll { due_ms };
    park(
        &mut run,
        Activation {
            polls_count,
            state,
            ..active.clone()
        },
        false,
    );
    turn.put::<Runs>(&number, run);
    Ok(())
}

/// The timer of a retry or poll.
pub(super) fn wake_timer(run: RunNumber, activation: u32, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StepWake,
        due_ms,
        subject: run.0,
        detail: activation,
    }
}

fn park(run: &mut RunRecord, changed: Activation, is_executing: bool) {
    if let Some(active) = run.activation_mut(changed.number) {
        *active = changed;
    }
    run.status = if is_executing {
        RunStatus::Running
    } else {
        RunStatus::Waiting
    };
}

/// The run leaves the step, and follows the transition of the outcome (W11).
fn leave(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (step, active, settled): (&Step, &Activation, Settled),
) -> Outcome<()> {
    let next = transition(step, &settled.outcome);
    let detail = next.is_none().then(|| {
        format!(
            "no transition for outcome \"{}\" of step \"{}\"",
            settled.outcome, step.name
        )
    });
    record_result(turn, (number, &mut run), active, settled);
    turn.put::<Runs>(&number, run);
    follow(
        progress,
        number,
        next.unwrap_or(Target::BuiltIn(BuiltInTerminal::Failed)),
        detail,
    );
    Ok(())
}

/// Notes what a step ended with and takes it out of the active ones.
pub(super) fn record_result(
    turn: &mut Turn<'_, '_>,
    (number, run): (RunNumber, &mut RunRecord),
    active: &Activation,
    settled: Settled,
) {
    let kind = EventKind::StepCompleted {
        outcome: settled.outcome.clone(),
        output: settled.output,
    };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    run.active.retain(|other| other.number != active.number);
    let order = run
        .results
        .values()
        .map(|result| result.order)
        .max()
        .unwrap_or(0)
        + 1;
    let result = StepResult {
        outcome: settled.outcome,
        output: settled.output,
        attempts: active.attempt,
        started_at_ms: active.started_at_ms,
        completed_at_ms: turn.now_ms(),
        order,
    };
    run.results.insert(active.step, result);
}

/// Goes where a transition leads.
pub(super) fn follow(
    progress: &mut Progress,
    run: RunNumber,
    target: Target,
    detail: Option<String>,
) {
    progress.push(match target {
        Target::Step(step) => Work::Enter { run, step },
        Target::BuiltIn(_) | Target::Custom(_) => Work::Finish {
            run,
            terminal: target,
            detail,
        },
    });
}
