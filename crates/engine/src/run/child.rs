//! Child workflows (W5, W17).

use super::advance::{Progress, Settled, Work};
use super::loaded::{ActivationRef, ActiveStep};
use super::open::{Opening, Parent, open, payload};
use super::outcome;
use crate::definition::{RunTarget, StepIndex, StepKind};
use crate::effect::Effect;
use crate::ids::{WorkflowName, WorkflowVersion};
use crate::json::Json;
use crate::limits::NESTING_MAX;
use crate::rejection::Rejection;
use crate::tables::{
    ActivationState, DefinitionNumber, EventKind, InputChecks, ParentLink, RunRecord, RunStatus,
    TriggeredBy,
};
use crate::turn::{Halt, Outcome, Turn};
use crate::workflow::{Resolved, newest, pinned};

/// Begins the child of an active step, or asks for the verdict on its input first (W4).
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    at: ActivationRef,
) -> Outcome<()> {
    let Some(mut parent) = ActiveStep::load(turn, at)? else {
        return Ok(());
    };
    let resolved = match target_of(turn, &parent)? {
        Ok(resolved) => resolved,
        Err(refusal) => return refuse(turn, progress, parent, refusal),
    };
    if resolved.record.definition.input_schema.is_none() {
        return start(turn, progress, parent, resolved.number);
    }
    parent.activation.state = ActivationState::ChildInput {
        definition: resolved.number,
    };
    parent.run.record.status = RunStatus::Waiting;
    parent.put(turn);
    turn.put::<InputChecks>(&(at.run, at.activation), ());
    turn.effect(Effect::CheckChildInput {
        parent: at.run,
        activation: at.activation,
    });
    Ok(())
}

/// Starts the child, in its parent's turn: so it is never doubled (W20).
pub(super) fn start(
    turn: &mut Turn<'_, '_>,
    progress: &mut Progress,
    mut parent: ActiveStep,
    definition: DefinitionNumber,
) -> Outcome<()> {
    let at = parent.at();
    let input = payload(turn, parent.activation.input)?;
    let record = &mut parent.run.record;
    let opening = Opening {
        namespace: record.namespace.clone(),
        run_id: None,
        definition,
        input: (*input).clone(),
        idempotency_key: None,
        triggered_by: TriggeredBy::Parent,
        parent: Some(Parent {
            link: ParentLink {
                run: at.run,
                activation: at.activation,
            },
            id: record.id.clone(),
        }),
        nesting: record.nesting + 1,
        trace: record.trace,
    };
    let child = open(turn, opening)?;
    record.status = RunStatus::Waiting;
    parent.activation.state = ActivationState::Child(child.number);
    parent.note(turn, EventKind::ChildStarted { child: child.id });
    parent.put(turn);
    progress.push(Work::Enter {
        run: child.number,
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
    mut parent: ActiveStep,
    refusal: Refusal,
) -> Outcome<()> {
    let output = Json::error(refusal.outcome, &refusal.detail);
    let output = parent.run.store_payload(turn, output);
    let kind = EventKind::ChildRefused {
        detail: refusal.detail.clone(),
    };
    parent.note(turn, kind);
    let at = parent.at();
    parent.put(turn);
    progress.push(at.settle(Settled {
        outcome: outcome::name::of(refusal.outcome),
        output: Some(output),
        reason: Some(refusal.detail),
        is_retryable: true,
    }));
    Ok(())
}

/// The definition that the step's target names.
fn target_of(turn: &mut Turn<'_, '_>, parent: &ActiveStep) -> Outcome<Result<Resolved, Refusal>> {
    let run = &parent.run.record;
    let definition = pinned(turn, run.definition)?;
    let StepKind::Run(step) = &definition.definition.step(parent.activation.step).kind else {
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
    resolve(turn, run, name, version.as_ref())
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
