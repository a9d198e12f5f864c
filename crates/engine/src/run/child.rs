//! Child workflows (W5, W17).

use super::advance::{Progress, Settled, Work};
use super::open::{Opening, load, open, payload, store_payload};
use super::outcome;
use crate::definition::{RunTarget, StepIndex, StepKind};
use crate::effect::Effect;
use crate::ids::{RunId, RunNumber, WorkflowName, WorkflowVersion};
use crate::json::Json;
use crate::limits::NESTING_MAX;
use crate::rejection::Rejection;
use crate::tables::{
    Activation, ActivationState, DefinitionNumber, Event, EventKind, InputChecks, ParentLink,
    RunRecord, RunStatus, Runs, TriggeredBy,
};
use crate::turn::{Halt, Outcome, Turn};
use crate::workflow::{Resolved, newest, pinned};

/// Begins the child of `activation`, or asks for the verdict on its input first (W4).
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    number: RunNumber,
    activation: u32,
) -> Outcome<()> {
    let mut run = load(turn, number)?;
    let Some(active) = run.activation(activation).cloned() else {
        return Ok(());
    };
    let resolved = match target_of(turn, &run, &active)? {
        Ok(resolved) => resolved,
        Err(refusal) => return refuse(turn, progress, (number, run), (&active, refusal)),
    };
    if resolved.record.definition.input_schema.is_none() {
        return start(turn, progress, (number, activation), resolved.number);
    }
    if let Some(active) = run.activation_mut(activation) {
        active.state = ActivationState::ChildInput {
            definition: resolved.number,
        };
    }
    run.status = RunStatus::Waiting;
    turn.put::<Runs>(&number, run);
    turn.put::<InputChecks>(&(number, activation), ());
    turn.effect(Effect::CheckChildInput {
        parent: number,
        activation,
    });
    Ok(())
}

/// Starts the child, in its parent's turn: so it is never doubled (W20).
pub(super) fn start(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    (number, activation): (RunNumber, u32),
    definition: DefinitionNumber,
) -> Outcome<()> {
    let mut run = load(turn, number)?;
    let Some(active) = run.activation(activation).cloned() else {
        return Ok(());
    };
    let input = payload(turn, active.input)?;
    let opening = Opening {
        namespace: run.namespace.clone(),
        run_id: None,
        definition,
        input: (*input).clone(),
        idempotency_key: None,
        triggered_by: TriggeredBy::Parent,
        parent: Some((
            ParentLink {
                run: number,
                activation,
            },
            run.id.clone(),
        )),
        nesting: run.nesting + 1,
    };
    let (child, child_id): (RunNumber, RunId) = open(turn, opening)?;
    let kind = EventKind::ChildStarted { child: child_id };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    if let Some(active) = run.activation_mut(activation) {
        active.state = ActivationState::Child(child);
    }
    run.status = RunStatus::Waiting;
    turn.put::<Runs>(&number, run);
    progress.push(Work::Enter {
        run: child,
        step: StepIndex::START,
    });
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
    progress: &mut Progress,
    (number, mut run): (RunNumber, RunRecord),
    (active, refusal): (&Activation, Refusal),
) -> Outcome<()> {
    let kind = EventKind::ChildRefused {
        detail: refusal.detail.clone(),
    };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    let output = Json::error(refusal.outcome, &refusal.detail);
    let output = store_payload(turn, number, &mut run, output);
    turn.put::<Runs>(&number, run);
    let settled = Settled {
        outcome: outcome::name::of(refusal.outcome),
        output: Some(output),
        is_retryable: true,
    };
    progress.push(Work::Settle {
        run: number,
        activation: active.number,
        settled,
    });
    Ok(())
}

/// The definition that the step's target names.
fn target_of(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    active: &Activation,
) -> Outcome<Result<Resolved, Refusal>> {
    let definition = pinned(turn, run.definition)?;
    let StepKind::Run(step) = &definition.definition.step(active.step).kind else {
        panic!("only run steps have children");
    };
    let RunTarget::Workflow { name, version } = &step.target else {
        panic!("only steps that target a workflow have children");
    };
    if run.nesting >= NESTING_MAX {
        let detail =
            format!("expected at most {NESTING_MAX} runs within runs, but this is one more");
        return Ok(Err(Refusal {
            outcome: outcome::name::EXECUTION_FAILURE,
            detail,
        }));
    }
    resolve(turn, run, (name, version.as_ref()))
}

fn resolve(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    (name, version): (&WorkflowName, Option<&WorkflowVersion>),
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
