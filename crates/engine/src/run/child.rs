//! Child workflows (W5, W17).

use super::advance::WorkQueue;
use super::loaded::LoadedRun;
use super::open::{Opening, Parent, open, payload};
use super::outcome;
use crate::definition::{RunTarget, StepIndex, StepKind};
use crate::effect::Effect;
use crate::ids::{WorkflowName, WorkflowVersion};
use crate::json::Json;
use crate::limits::NESTING_MAX;
use crate::rejection::Rejection;
use crate::tables::{
    Activation, ActivationState, Awaited, DefinitionNumber, EventKind, InputChecks, ParentLink,
    RunRecord, Settled, TriggeredBy, Work,
};
use crate::turn::{Draft, Halt, Outcome, Turn};
use crate::workflow::{Resolved, newest};

/// Begins the child of an active step, or asks for the verdict on its input first (W4).
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u32,
) -> Outcome<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let resolved = match target_of(turn, run, &active)? {
        Ok(resolved) => resolved,
        Err(refusal) => return refuse(turn, queue, run, (active, refusal)),
    };
    if resolved.record.definition.input_schema.is_none() {
        return start(turn, queue, run, (active, resolved.number));
    }
    active.state = ActivationState::ChildInput {
        definition: resolved.number,
    };
    run.put_back(active);
    turn.put::<InputChecks>(&(run.number, activation), ());
    turn.effect(Effect::CheckChildInput {
        parent: run.number,
        activation,
    });
    Ok(())
}

/// Starts the child, in its parent's turn: so it is never doubled (W20).
pub(super) fn start(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    (mut active, definition): (Draft<Activation>, DefinitionNumber),
) -> Outcome<()> {
    let input = payload(turn, active.input)?;
    let opening = Opening {
        namespace: run.record.namespace.clone(),
        run_id: None,
        definition,
        input: (*input).clone(),
        idempotency_key: None,
        triggered_by: TriggeredBy::Parent,
        parent: Some(Parent {
            link: ParentLink {
                run: run.number,
                activation: active.number,
            },
            id: run.record.id.clone(),
        }),
        nesting: run.record.nesting + 1,
        trace: run.record.trace,
    };
    let child = open(turn, opening)?;
    active.state = ActivationState::Child(child.number);
    run.note(&active, EventKind::ChildStarted { child: child.id });
    run.put_back(active);
    let step = StepIndex::START;
    queue.push(child.number, Work::Enter { step });
    Ok(())
}

/// Why a child cannot be started.
pub(super) struct Refusal {
    pub(super) outcome: &'static str,
    pub(super) detail: String,
}

/// Settles the step of a child that cannot be started.
pub(super) fn refuse(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    (mut active, refusal): (Draft<Activation>, Refusal),
) -> Outcome<()> {
    let output = Json::error(refusal.outcome, &refusal.detail);
    let output = run.store_payload(turn, output);
    let kind = EventKind::ChildRefused {
        detail: refusal.detail.clone(),
    };
    run.note(&active, kind);
    active.state = ActivationState::Executing;
    let activation = active.number;
    run.put_back(active);
    let settled = Settled {
        from: Awaited::Nothing,
        outcome: outcome::name::of(refusal.outcome),
        output: Some(output),
        reason: Some(refusal.detail),
        is_retryable: true,
    };
    let work = Work::Settle {
        activation,
        settled,
    };
    queue.push(run.number, work);
    Ok(())
}

/// Why the child of an active step cannot be started now, if it cannot.
pub(super) fn refusal_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> Outcome<Option<Refusal>> {
    Ok(target_of(turn, run, active)?.err())
}

/// The definition that the step's target names.
fn target_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> Outcome<Result<Resolved, Refusal>> {
    let StepKind::Run(step) = &run.definition.definition.step(active.step).kind else {
        panic!("only run steps have children");
    };
    let RunTarget::Workflow { name, version } = &step.target else {
        panic!("only steps that target a workflow have children");
    };
    if run.record.nesting >= NESTING_MAX {
        let detail =
            format!("expected at most {NESTING_MAX} runs within runs, but this is one more");
        return Ok(Err(Refusal {
            outcome: outcome::name::EXECUTION_FAILURE,
            detail,
        }));
    }
    resolve(turn, &run.record, name, version.as_ref())
}

fn resolve(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> Outcome<Result<Resolved, Refusal>> {
    match newest(turn, &run.namespace, name, version) {
        Ok(resolved) if !resolved.is_enabled => Ok(Err(Refusal {
            outcome: outcome::name::TARGET_DISABLED,
            detail: Rejection::WorkflowDisabled(name.clone()).to_string(),
        })),
        Ok(resolved) => Ok(Ok(resolved)),
        Err(Halt::Rejected(rejection)) => Ok(Err(Refusal {
            outcome: outcome::name::TARGET_NOT_FOUND,
            detail: rejection.to_string(),
        })),
        Err(Halt::Store(error)) => Err(Halt::Store(error)),
    }
}
