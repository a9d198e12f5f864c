//! Invoking a run step's target.

use super::advance::{Progress, Settled, Work};
use super::open::{load, store_payload};
use super::outcome::name;
use crate::action;
use crate::definition::{RunTarget, StepKind};
use crate::ids::{ActionName, RunNumber};
use crate::json::Json;
use crate::tables::{
    ActionRecord, ActionRunOwner, Actions, Activation, ActivationState, Event, EventKind,
    RunRecord, RunStatus, Runs,
};
use crate::task;
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;
use std::sync::Arc;

/// Invokes the target of `activation`.
pub(super) fn execute(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    number: RunNumber,
    activation: u32,
) -> Outcome<()> {
    let run = load(turn, number)?;
    let Some(active) = run.activation(activation).cloned() else {
        return Ok(());
    };
    let definition = pinned(turn, run.definition)?;
    let StepKind::Run(step) = &definition.definition.step(active.step).kind else {
        panic!("only run steps are executed");
    };
    match &step.target {
        RunTarget::Action(action) => {
            execute_action(turn, progress, (number, run), (&active, action))
        }
        RunTarget::Workflow { .. } => {
            progress.push(Work::BeginChild {
                run: number,
                activation,
            });
            Ok(())
        }
        RunTarget::Plan(_) => panic!("a definition with plans is refused until plans are run"),
    }
}

fn execute_action(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (active, name): (&Activation, &ActionName),
) -> Outcome<()> {
    let action = match usable(turn, &run, name)? {
        Ok(action) => action,
        Err(refusal) => {
            turn.event(
                number,
                Event {
                    step: Some(active.step),
                    kind: refusal.event,
                },
            );
            let output = Json::error(refusal.outcome, &refusal.message);
            let output = store_payload(turn, number, &mut run, output);
            turn.put::<Runs>(&number, run);
            let settled = Settled {
                outcome: name::of(refusal.outcome),
                output: Some(output),
                is_retryable: false,
            };
            progress.push(Work::Settle {
                run: number,
                activation: active.number,
                settled,
            });
            return Ok(());
        }
    };
    let opening = action::Opening {
        namespace: run.namespace.clone(),
        name: name.clone(),
        owner: ActionRunOwner::Step {
            run: number,
            activation: active.number,
        },
        input: action::ActionInput::Stored(active.input),
        priority: action::PRIORITY_DEFAULT,
        labels: std::collections::BTreeMap::new(),
        idempotency_key: None,
    };
    let action_run = action::open(turn, &action, opening)?;
    let kind = EventKind::AwaitingAction {
        action: name.clone(),
        action_run,
    };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    if let Some(active) = run.activation_mut(active.number) {
        active.state = ActivationState::Action(action_run);
    }
    run.status = RunStatus::Waiting;
    turn.put::<Runs>(&number, run);
    task::make_ready(turn, action_run)
}

/// Why an action cannot be invoked.
struct Refusal {
    outcome: &'static str,
    event: EventKind,
    message: String,
}

fn usable(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    action: &ActionName,
) -> Outcome<Result<Arc<ActionRecord>, Refusal>> {
    Ok(
        match turn.get::<Actions>(&(run.namespace.clone(), action.clone()))? {
            None => Err(Refusal {
                outcome: name::TARGET_NOT_FOUND,
                event: EventKind::ActionNotFound {
                    action: action.clone(),
                },
                message: format!("expected an action named \"{action}\", but none is registered"),
            }),
            Some(record) if !record.is_enabled => Err(Refusal {
                outcome: name::TARGET_DISABLED,
                event: EventKind::ActionDisabled {
                    action: action.clone(),
                },
                message: format!("expected action \"{action}\" to be enabled, but it is disabled"),
            }),
            Some(record) => Ok(record),
        },
    )
}
