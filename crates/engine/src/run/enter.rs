//! Entering a step.

use super::advance::{Progress, Settled, Work};
use super::open::{load, store_payload};
use super::outcome::name;
use super::render;
use crate::definition::{BuiltInTerminal, RunStep, StepIndex, StepKind, Target, WaitStep};
use crate::ids::RunNumber;
use crate::json::Json;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Event, EventKind, RunRecord, RunStatus, Runs, SignalsWaiting,
    TimerKey, TimerKind,
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
    if !progress.count_step() {
        progress.push(Work::Finish {
            run: number,
            terminal: Target::BuiltIn(BuiltInTerminal::Failed),
            detail: Some("max step limit reached".to_owned()),
        });
        return Ok(());
    }
    let mut run = load(turn, number)?;
    let definition = pinned(turn, run.definition)?;
    run.status = RunStatus::Running;
    turn.event(
        number,
        Event {
            step: Some(step),
            kind: EventKind::StepStarted,
        },
    );
    match &definition.definition.step(step).kind {
        StepKind::Run(run_step) => enter_run_step(turn, progress, (number, run), (step, run_step)),
        StepKind::Wait(wait) => enter_wait_step(turn, progress, (number, run), (step, wait)),
    }
}

fn enter_run_step(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (step, run_step): (StepIndex, &RunStep),
) -> Outcome<()> {
    let mapped = match &run_step.input {
        None => Ok(run.input),
        Some(template) => render::render(turn, &run, template)?
            .map(|input| store_payload(turn, number, &mut run, input)),
    };
    let activation = activate(turn, &mut run, step);
    match mapped {
        Ok(input) => {
            run.active.push(Activation {
                input,
                ..activation
            });
            progress.push(Work::Execute {
                run: number,
                activation: run.activations_count,
            });
        }
        Err(too_large) => {
            let message = format!(
                "expected a mapped input of at most {} bytes, but it has {} or more",
                crate::limits::PAYLOAD_BYTES_MAX,
                too_large.bytes
            );
            let output = Json::error("input_too_large", &message);
            let output = store_payload(turn, number, &mut run, output);
            run.active.push(activation);
            let settled = Settled {
                outcome: name::of(name::EXECUTION_FAILURE),
                output: Some(output),
                is_retryable: false,
            };
            let activation = run.activations_count;
            progress.push(Work::Settle {
                run: number,
                activation,
                settled,
            });
        }
    }
    turn.put::<Runs>(&number, run);
    Ok(())
}

fn enter_wait_step(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (step, wait): (StepIndex, &WaitStep),
) -> Outcome<()> {
    let activation = activate(turn, &mut run, step);
    if let Some(settled) = take_stored_signal(turn, number, (step, wait))? {
        run.active.push(activation);
        progress.push(Work::Settle {
            run: number,
            activation: run.activations_count,
            settled,
        });
        turn.put::<Runs>(&number, run);
        return Ok(());
    }
    let deadline_ms = wait
        .timeout_ms
        .map(|timeout| turn.now_ms().saturating_add(timeout));
    if let Some(due_ms) = deadline_ms {
        turn.set_timer(signal_timer(number, activation.number, due_ms));
    }
    let kind = EventKind::WaitingForSignal {
        signal_type: wait.signal_type.clone(),
        deadline_ms,
    };
    turn.event(
        number,
        Event {
            step: Some(step),
            kind,
        },
    );
    run.active.push(Activation {
        state: ActivationState::Signal { deadline_ms },
        ..activation
    });
    run.status = RunStatus::Waiting;
    turn.put::<Runs>(&number, run);
    Ok(())
}

/// The timer of a wait.
pub(super) fn signal_timer(run: RunNumber, activation: u32, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::SignalTimeout,
        due_ms,
        subject: run.0,
        detail: activation,
    }
}

/// A new activation, executing, with the run's input.
fn activate(turn: &Turn<'_, '_>, run: &mut RunRecord, step: StepIndex) -> Activation {
    run.activations_count += 1;
    Activation {
        number: run.activations_count,
        step,
        attempt: 1,
        polls_count: 0,
        started_at_ms: turn.now_ms(),
        input: run.input,
        state: ActivationState::Executing,
    }
}

/// The oldest stored signal of the wanted type, if there is one: it satisfies this wait only (W19).
fn take_stored_signal(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    (step, wait): (StepIndex, &WaitStep),
) -> Result<Option<Settled>, StoreError> {
    let stored = turn.list::<SignalsWaiting>(&(number, wait.signal_type.clone()), 1)?;
    let Some((key, signal)) = stored.into_iter().next() else {
        return Ok(None);
    };
    turn.delete::<SignalsWaiting>(&key);
    let kind = EventKind::SignalMatched {
        signal_type: wait.signal_type.clone(),
    };
    turn.event(
        number,
        Event {
            step: Some(step),
            kind,
        },
    );
    Ok(Some(Settled {
        outcome: name::of(name::SUCCESS),
        output: Some(signal.payload),
        is_retryable: false,
    }))
}
