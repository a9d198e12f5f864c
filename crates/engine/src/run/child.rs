//! Child workflows (W5, W17).

use super::create::{Creation, NewRun, Parent, create};
use super::exclusion::GivenExclusion;
use super::{outcome, schema_check, timeout_timers};
use crate::definition::{RunTarget, StepIndex};
use crate::ids::{ConcurrencyKeyNumber, RunNumber, ScopeNumber, WorkflowName, WorkflowVersion};
use crate::json::Json;
use crate::limits::NESTING_MAX;
use crate::rejection::Rejection;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Awaited, DefinitionNumber, EventKind, ParentLink, RunRecord,
    TargetResult, TriggeredBy, Work,
};
use crate::turn::{Abort, ActivationRef, Draft, LoadedRun, Turn, TurnResult};
use crate::workflow::{ResolvedDefinition, newest};

/// Starts the child of an active step, or first requests the validation of its input (W4).
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    activation: u64,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    let resolved = match target_of(turn, run, &active)? {
        Ok(resolved) => resolved,
        Err(refusal) => {
            let work = refuse(turn, run, active, refusal);
            queue.push(run.number, work);
            return Ok(());
        }
    };
    if resolved.record.definition.input_schema.is_none() {
        let definition = resolved.number;
        return start(turn, queue, run, NewChild { active, definition });
    }
    active.state = ActivationState::ChildInput {
        definition: resolved.number,
    };
    run.put_back(active);
    schema_check::request(
        turn,
        ActivationRef {
            run: run.number,
            activation,
        },
    );
    Ok(())
}

/// The work that a new run begins with.
pub(crate) const FIRST_WORK: Work = Work::Enter {
    scope: ScopeNumber::ROOT,
    step: StepIndex::START,
};

/// A child that a step starts.
pub(super) struct NewChild {
    /// The step.
    pub(super) active: Draft<Activation>,
    /// The definition of the child.
    pub(super) definition: DefinitionNumber,
}

/// Creates the child in its parent's turn, so that it is started exactly once (W20).
pub(super) fn start(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    new_child: NewChild,
) -> TurnResult<()> {
    let NewChild {
        mut active,
        definition,
    } = new_child;
    let input = turn.payload(active.input)?;
    let metadata = metadata_of(turn, run)?;
    let above = Above::of_child(turn, run, definition)?;
    let new_run = NewRun {
        namespace: run.record.namespace.clone(),
        run_id: None,
        definition,
        input,
        metadata,
        idempotency_key: None,
        triggered_by: TriggeredBy::Parent,
        parent: Some(Parent {
            link: ParentLink {
                run: run.number,
                activation: active.number,
                is_detached: false,
            },
            id: run.record.id.clone(),
            above,
        }),
        nesting: run.record.nesting + 1,
        hops: run.record.hops,
        trace: run.record.trace,
        starts_at_ms: None,
        attempt: None,
        exclusion: GivenExclusion::default(),
        taken_over: None,
    };
    let child = match create(turn, new_run) {
        Ok(Creation::Run(child)) => child,
        Ok(Creation::Existing(_)) => panic!("a parent uses no run that exists already"),
        Err(Abort::Rejected(rejection)) => {
            let refusal = Refusal::of(&rejection);
            queue.push(run.number, refuse(turn, run, active, refusal));
            return Ok(());
        }
        Err(Abort::Store(error)) => return Err(Abort::Store(error)),
    };
    active.state = ActivationState::Child(child.number);
    active.open_call(&run.definition.definition);
    run.note(&active, EventKind::ChildStarted { child: child.id });
    // The child waits for its concurrency keys or its locks: that counts as time in the queue.
    if child.first_work != Some(FIRST_WORK) {
        timeout_timers::start_queue(turn, run, &mut active);
    }
    run.put_back(active);
    if let Some(work) = child.first_work {
        queue.push(child.number, work);
    }
    Ok(())
}

/// The runs above a child, its parent first, with the concurrency keys that they hold: neither they nor their keys keep
/// the child from starting (W84, W85).
#[derive(Default)]
pub(crate) struct Above {
    pub(super) runs: Vec<RunNumber>,
    pub(super) held_keys: Vec<ConcurrencyKeyNumber>,
}

impl Above {
    /// Those above a child of `parent` with this definition; empty if nothing can keep it from starting.
    pub(super) fn of_child(
        turn: &mut Turn<'_, '_>,
        parent: &LoadedRun,
        definition: DefinitionNumber,
    ) -> TurnResult<Self> {
        let child = turn.pinned(definition)?;
        let child = &child.definition;
        match child.concurrency.is_empty() && child.target.is_none() {
            true => Ok(Self::default()),
            false => Self::of(turn, parent),
        }
    }

    /// Those above a child of `parent`.
    pub(super) fn of(turn: &mut Turn<'_, '_>, parent: &LoadedRun) -> TurnResult<Self> {
        let mut above = Self::default();
        above.add(parent.number, &parent.record);
        let mut next = parent.record.parent;
        while let Some(link) = next {
            let Some(record) = turn.run_record(link.run)? else {
                break;
            };
            above.add(link.run, &record);
            next = record.parent;
        }
        Ok(above)
    }

    fn add(&mut self, number: RunNumber, run: &RunRecord) {
        self.runs.push(number);
        let places = run
            .start_limits
            .concurrency
            .iter()
            .flat_map(|own| &own.places);
        self.held_keys.extend(places.map(|place| place.key));
    }
}

/// The metadata of a run, which its children and further attempts share (W91).
pub(super) fn metadata_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
) -> Result<Option<Json>, StoreError> {
    run.record
        .metadata
        .map(|metadata| turn.payload(metadata))
        .transpose()
}

/// The work that tells the parent of a run that the run begins, after it has waited; `None` without a parent.
pub(super) fn began(run: &LoadedRun) -> Option<(RunNumber, Work)> {
    let link = run.record.parent?;
    let work = Work::ChildBegan {
        activation: link.activation,
        child: run.record.first_attempt(run.number),
    };
    Some((link.run, work))
}

/// The child that waited for its concurrency keys or its locks has begun: from now on, the time of the attempt counts (W70).
pub(super) fn note_began(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    activation: u64,
    child: RunNumber,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, activation)? else {
        return Ok(());
    };
    if active.state.awaits() == Awaited::Child(child) && !active.is_stopping() {
        timeout_timers::end_queue(turn, run.at(&active), &mut active);
    }
    run.put_back(active);
    Ok(())
}

/// Why a child cannot be started.
pub(super) struct Refusal {
    pub(super) outcome: &'static str,
    /// The code of the error.
    pub(super) code: &'static str,
    pub(super) detail: String,
}

impl Refusal {
    /// A refusal whose code is its outcome.
    pub(super) fn new(outcome: &'static str, detail: String) -> Self {
        Self {
            outcome,
            code: outcome,
            detail,
        }
    }

    /// A start that was rejected: at a concurrency limit or because of another run, the step can be retried as any other
    /// that fails (W84, W85).
    fn of(rejection: &Rejection) -> Self {
        let detail = rejection.to_string();
        match rejection.is_start_conflict() {
            true => Self {
                outcome: outcome::name::FAILURE,
                code: rejection.code().as_str(),
                detail,
            },
            false => Self::new(outcome::name::EXECUTION_FAILURE, detail),
        }
    }
}

/// The work that finishes the step of a child that cannot be started.
pub(super) fn refuse(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
    refusal: Refusal,
) -> Work {
    let output = Json::error(refusal.code, &refusal.detail);
    let output = run.store_payload(turn, output);
    let kind = EventKind::ChildRefused {
        detail: refusal.detail.clone(),
    };
    run.note(&active, kind);
    active.state = ActivationState::Executing;
    let activation = active.number;
    run.put_back(active);
    let target_result = TargetResult {
        output: Some(output),
        reason: Some(refusal.detail),
        is_retryable: true,
        ..TargetResult::of_engine(outcome::name::of(refusal.outcome))
    };
    Work::FinishStep {
        activation,
        target_result,
    }
}

/// Why the child of an active step cannot be started now, if it cannot.
pub(super) fn refusal_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> TurnResult<Option<Refusal>> {
    Ok(target_of(turn, run, active)?.err())
}

/// The definition that the step's target names.
fn target_of(
    turn: &mut Turn<'_, '_>,
    run: &LoadedRun,
    active: &Activation,
) -> TurnResult<Result<ResolvedDefinition, Refusal>> {
    let call = run
        .definition
        .definition
        .step(active.step)
        .call(active.call);
    let RunTarget::Workflow { name, version } = &call.expect("only run steps have children").target
    else {
        panic!("only steps that target a workflow have children");
    };
    if run.record.nesting >= NESTING_MAX {
        let detail = format!(
            "expected at most {NESTING_MAX} levels of child runs, but this run would exceed them"
        );
        let outcome = outcome::name::EXECUTION_FAILURE;
        return Ok(Err(Refusal::new(outcome, detail)));
    }
    resolve(turn, &run.record, name, version.as_ref())
}

fn resolve(
    turn: &mut Turn<'_, '_>,
    run: &RunRecord,
    name: &WorkflowName,
    version: Option<&WorkflowVersion>,
) -> TurnResult<Result<ResolvedDefinition, Refusal>> {
    match newest(turn, &run.namespace, name, version) {
        Ok(resolved) if !resolved.is_enabled => Ok(Err(Refusal::new(
            outcome::name::TARGET_DISABLED,
            Rejection::WorkflowDisabled(name.clone()).to_string(),
        ))),
        Ok(resolved) => Ok(Ok(resolved)),
        Err(Abort::Rejected(rejection)) => Ok(Err(Refusal::new(
            outcome::name::TARGET_NOT_FOUND,
            rejection.to_string(),
        ))),
        Err(Abort::Store(error)) => Err(Abort::Store(error)),
    }
}
