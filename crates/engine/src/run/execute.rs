//! Invoking the target of a run step, or the block of a block step again.

use super::failure::failed;
use super::outcome::name;
use super::{branches, compensation, timeout_timers};
use crate::definition::{RunTarget, StepKind};
use crate::ids::{ActionName, Namespace};
use crate::json::Json;
use crate::mostly_default::MostlyDefault;
use crate::run::work_queue::WorkQueue;
use crate::tables::{
    ActionRecord, ActionRunsByRun, Actions, Activation, ActivationState, Awaited, EventKind,
    TargetResult, Work,
};
use crate::task::{self, LoadedTask};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};
use crate::{action, plan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Invokes the target or block of an active step.
pub(super) fn execute(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    // It executes already, or no longer.
    if !active.state.is_executing() {
        run.put_back(active);
        return Ok(());
    }
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    if let StepKind::Block(_) = step.kind {
        branches::enter(queue, run, active);
        return Ok(());
    }
    let call = step.call(active.call);
    let call = call.expect("only steps with a target or a block are executed");
    if let Some((code, message)) = compensation::refusal(run, &active) {
        let target_result = failed(turn, run, code, message);
        run.put_back(active);
        let work = Work::FinishStep {
            activation,
            target_result,
        };
        queue.push(run.number, work);
        return Ok(());
    }
    match &call.target {
        RunTarget::Action(name) => {
            if let Some(work) = execute_action(turn, run, active, name)? {
                queue.push(run.number, work);
            }
            Ok(())
        }
        RunTarget::Workflow { .. } => {
            timeout_timers::start_attempt(turn, run, &mut active);
            queue.push(run.number, Work::BeginChild { activation });
            run.put_back(active);
            Ok(())
        }
        RunTarget::Plan(_) => {
            timeout_timers::start_attempt(turn, run, &mut active);
            plan::execute(turn, queue, run, active)
        }
    }
}

/// Invokes the action; if it cannot be invoked, returns the work that finishes the step.
fn execute_action(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    name: &ActionName,
) -> TurnResult<Option<Work>> {
    match create_action_run(turn, run, &active, name)? {
        Ok(task) => {
            active.state = ActivationState::Action(task.number);
            active.open_call(&run.definition.definition);
            run.put_back(active);
            task::make_ready(turn, Some(run), task)?;
            Ok(None)
        }
        Err(target_result) => {
            let activation = active.number;
            run.put_back(active);
            Ok(Some(Work::FinishStep {
                activation,
                target_result,
            }))
        }
    }
}

/// Makes an action run for an active step, not yet ready; or says what comes back of an action that
/// cannot be invoked.
pub(crate) fn create_action_run(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    name: &ActionName,
) -> TurnResult<Result<LoadedTask, TargetResult>> {
    let namespace = run.record.namespace.clone();
    let action = match usable(turn, &namespace, name)? {
        Ok(action) => action,
        Err(refusal) => return Ok(Err(refuse(turn, run, active, refusal))),
    };
    let new_action_run = action::NewActionRun {
        namespace,
        name: name.clone(),
        owner: action::Owner::Step(run, active),
        input: action::ActionInput::Stored(active.input),
        priority: action::PRIORITY_DEFAULT,
        labels: BTreeMap::new(),
        idempotency_key: None,
    };
    let task = action::create(turn, &action, new_action_run)?;
    if run.is_silent(&run.scope_id(active.scope), active.visit) {
        // No event names it, so this row leads from the run to it.
        turn.put::<ActionRunsByRun>(&(run.number, task.number), run.next_event());
    }
    let kind = EventKind::AwaitingAction {
        action: name.clone(),
        action_run: task.number,
    };
    run.note(active, kind);
    Ok(Ok(task))
}

/// Why an action cannot be invoked.
struct Refusal {
    outcome: &'static str,
    event: EventKind,
    message: String,
}

/// What comes back of an action that cannot be invoked.
fn refuse(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    refusal: Refusal,
) -> TargetResult {
    run.note(active, refusal.event);
    let output = Json::error(refusal.outcome, &refusal.message);
    TargetResult {
        from: Awaited::Nothing,
        outcome: name::of(refusal.outcome),
        output: Some(run.store_payload(turn, output)),
        reason: Some(refusal.message),
        is_retryable: false,
        cause: MostlyDefault::default(),
        not_before_ms: None,
        state_patch: None,
    }
}

fn usable(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    action: &ActionName,
) -> TurnResult<Result<Arc<ActionRecord>, Refusal>> {
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
