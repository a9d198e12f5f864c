//! Invoking a run step's target.

use super::advance::{Progress, Settled, Work};
use super::loaded::{ActivationRef, ActiveStep};
use super::outcome::name;
use crate::action;
use crate::definition::{RunTarget, StepKind};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::json::Json;
use crate::plan;
use crate::tables::{ActionRecord, Actions, ActivationState, EventKind, RunStatus};
use crate::task;
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Invokes the target of an active step.
pub(super) fn execute(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    at: ActivationRef,
) -> Outcome<()> {
    let Some(active) = ActiveStep::load(turn, at)? else {
        return Ok(());
    };
    let definition = pinned(turn, active.run.record.definition)?;
    let StepKind::Run(step) = &definition.definition.step(active.activation.step).kind else {
        panic!("only run steps are executed");
    };
    match &step.target {
        RunTarget::Action(name) => execute_action(turn, progress, active, name),
        RunTarget::Workflow { .. } => {
            progress.push(Work::BeginChild {
                run: at.run,
                activation: at.activation,
            });
            Ok(())
        }
        RunTarget::Plan(_) => plan::execute(turn, progress, at),
    }
}

fn execute_action(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    mut active: ActiveStep,
    name: &ActionName,
) -> Outcome<()> {
    match open_action(turn, &mut active, name)? {
        Ok(action_run) => {
            active.activation.state = ActivationState::Action(action_run);
            active.run.record.status = RunStatus::Waiting;
            active.put(turn);
            task::make_ready(turn, action_run)
        }
        Err(settled) => {
            progress.push(active.at().settle(settled));
            active.put(turn);
            Ok(())
        }
    }
}

/// Makes an action run for an active step, not yet ready; or says what comes back of an action that
/// cannot be invoked.
pub(crate) fn open_action(
    turn: &mut Turn<'_, '_>,
    active: &mut ActiveStep,
    name: &ActionName,
) -> Outcome<Result<ActionRunNumber, Settled>> {
    let namespace = active.run.record.namespace.clone();
    let input = action::ActionInput::Stored(active.activation.input);
    let action = match usable(turn, &namespace, name)? {
        Ok(action) => action,
        Err(refusal) => return Ok(Err(refuse(turn, active, refusal))),
    };
    let opening = action::Opening {
        namespace,
        name: name.clone(),
        owner: action::Owner::Step(active),
        input,
        priority: action::PRIORITY_DEFAULT,
        labels: BTreeMap::new(),
        idempotency_key: None,
    };
    let action_run = action::open(turn, &action, opening)?;
    let kind = EventKind::AwaitingAction {
        action: name.clone(),
        action_run,
    };
    active.note(turn, kind);
    Ok(Ok(action_run))
}

/// Why an action cannot be invoked.
struct Refusal {
    outcome: &'static str,
    event: EventKind,
    message: String,
}

/// What comes back of an action that cannot be invoked.
fn refuse(turn: &mut Turn<'_, '_>, active: &mut ActiveStep, refusal: Refusal) -> Settled {
    active.note(turn, refusal.event);
    let output = Json::error(refusal.outcome, &refusal.message);
    Settled {
        outcome: name::of(refusal.outcome),
        output: Some(active.run.store_payload(turn, output)),
        reason: Some(refusal.message),
        is_retryable: false,
    }
}

fn usable(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    action: &ActionName,
) -> Outcome<Result<Arc<ActionRecord>, Refusal>> {
    Ok(
        match turn.get::<Actions>(&(namespace.clone(), action.clone()))? {
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
