//! Entering a step.

use super::advance::{Progress, Settled};
use super::loaded::{ActivationRef, ActiveStep, Loaded, load};
use super::outcome::name;
use super::render;
use crate::definition::{RunStep, StepIndex, StepKind, WaitStep};
use crate::ids::RunNumber;
use crate::json::Json;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, EventKind, RunStatus, SignalsWaiting, TimerKey, TimerKind,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// A run enters `step`: its mapping is resolved once, for all attempts.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    number: RunNumber,
    step: StepIndex,
) -> Outcome<()> {
    if !progress.count_step(number) {
        return Ok(());
    }
    let mut run = load(turn, number)?;
    let definition = pinned(turn, run.record.definition)?;
    run.record.status = RunStatus::Running;
    run.note(turn, step, EventKind::StepStarted);
    let entered = activate(turn, run, step);
    match &definition.definition.step(step).kind {
        StepKind::Run(run_step) => enter_run_step(turn, progress, entered, run_step),
        StepKind::Wait(wait) => enter_wait_step(turn, progress, entered, wait),
    }
}

fn enter_run_step(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    mut entered: ActiveStep,
    step: &RunStep,
) -> Outcome<()> {
    let at = entered.at();
    let mapped = match &step.input {
        None => Ok(entered.run.record.input),
        Some(template) => render::render(turn, &entered.run.record, template)?
            .map(|input| entered.run.store_payload(turn, input)),
    };
    match mapped {
        Ok(input) => {
            entered.activation.input = input;
            progress.push(at.execute());
        }
        Err(too_large) => {
            let message = format!(
                "expected a mapped input of at most {PAYLOAD_BYTES_MAX} bytes, but it has {} or more",
                too_large.bytes
            );
            let output = Json::error("input_too_large", &message);
            let output = entered.run.store_payload(turn, output);
            progress.push(at.settle(Settled {
                outcome: name::of(name::EXECUTION_FAILURE),
                output: Some(output),
                reason: Some(message),
                is_retryable: false,
            }));
        }
    }
    entered.put(turn);
    Ok(())
}

fn enter_wait_step(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    mut entered: ActiveStep,
    wait: &WaitStep,
) -> Outcome<()> {
    let at = entered.at();
    if let Some(settled) = take_stored_signal(turn, &entered, wait)? {
        progress.push(at.settle(settled));
        entered.put(turn);
        return Ok(());
    }
    let deadline_ms = wait
        .timeout_ms
        .map(|timeout| turn.now_ms().saturating_add(timeout));
    if let Some(due_ms) = deadline_ms {
        turn.set_timer(signal_timer(at, due_ms));
    }
    let kind = EventKind::WaitingForSignal {
        signal_type: wait.signal_type.clone(),
        deadline_ms,
    };
    entered.note(turn, kind);
    entered.activation.state = ActivationState::Signal { deadline_ms };
    entered.run.record.status = RunStatus::Waiting;
    entered.put(turn);
    Ok(())
}

/// The timer of a wait.
pub(super) fn signal_timer(at: ActivationRef, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::SignalTimeout,
        due_ms,
        subject: at.run.0,
        detail: at.activation,
    }
}

/// A new activation, executing, with the run's input.
fn activate(turn: &Turn<'_, '_>, mut run: Loaded, step: StepIndex) -> ActiveStep {
    run.record.activations_count += 1;
    let activation = Activation {
        number: run.record.activations_count,
        step,
        attempt: 1,
        polls_count: 0,
        started_at_ms: turn.now_ms(),
        input: run.record.input,
        state: ActivationState::Executing,
    };
    run.record.active.push(activation.clone());
    ActiveStep { run, activation }
}

/// The oldest stored signal of the wanted type, if there is one: it satisfies this wait only (W19).
fn take_stored_signal(
    turn: &mut Turn<'_, '_>,
    entered: &ActiveStep,
    wait: &WaitStep,
) -> Result<Option<Settled>, StoreError> {
    if entered.run.record.signals_count == 0 {
        return Ok(None);
    }
    let queue = (entered.run.number, wait.signal_type.clone());
    let stored = turn.list::<SignalsWaiting>(&queue, 1)?;
    let Some((key, signal)) = stored.into_iter().next() else {
        return Ok(None);
    };
    turn.delete::<SignalsWaiting>(&key);
    let kind = EventKind::SignalMatched {
        signal_type: wait.signal_type.clone(),
    };
    entered.note(turn, kind);
    Ok(Some(Settled {
        outcome: name::of(name::SUCCESS),
        output: Some(signal.payload),
        reason: None,
        is_retryable: false,
    }))
}
