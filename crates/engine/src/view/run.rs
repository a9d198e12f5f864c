//! Reads runs (W21, W22).

use super::payload;
use super::run_attempts::{RunAttempts, attempts, latest_attempt};
use super::run_definitions::first_definition;
use super::run_detail::{quarantine_detail, run_detail};
use super::scope_tree::{ScopeView, ScopedRun, scope_tree};
use super::step_output::step_views;
use crate::definition::{Definition, Target};
use crate::ids::{
    AttributeName, IdempotencyKey, Namespace, RunId, RunNumber, ScopeNumber, StepName,
    WorkflowName, WorkflowVersion,
};
use crate::json::Json;
use crate::limits::{READ_BYTES_MAX, RUN_TREE_BYTES_MAX};
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRunRecord, ActionRuns, Activation, ActivationState, Activations, AttributeValue,
    CompensationProgress, DefinitionNumber, DefinitionRecord, Definitions, Exclusions, Phase,
    PlanWait, RunNames, RunRecord, RunStatus, Runs, Scopes, States, TriggeredBy, encode_prefix,
    read, visit,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A run as `flo workflow status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// What lists show.
    pub row: RunRow,
    /// Why it waits or how it failed (W21a).
    pub detail: Option<String>,
    /// What it does before its end, once that is decided (W83).
    pub phase: Option<Phase>,
    /// How far its end has come with undoing what its steps have done (W82).
    pub compensation: CompensationProgress,
    /// Why it has failed or timed out, or will once its phases are over: an object (W80). `None` for another end.
    pub error: Option<Json>,
    /// The open scopes, as a tree; `None` once it has ended (W53).
    pub scopes: Option<ScopeView>,
    /// The active steps in the order in which they were entered, as many as [`RUN_TREE_BYTES_MAX`] allows.
    pub current_steps: Vec<CurrentStep>,
    /// The number of active steps, including those not shown.
    pub current_steps_count: usize,
    /// The input.
    pub input: Json,
    /// The metadata that it was started with (W91).
    pub metadata: Option<Json>,
    /// The output, once it ended with one.
    pub output: Option<Json>,
    /// The state, an object, without what open scopes below the run have written; `None` as long as there is none (W66).
    pub state: Option<Json>,
    /// The steps that were left and are not active, by name.
    pub steps: BTreeMap<StepName, StepView>,
    /// Search attributes that are present (W22).
    pub search_attributes: BTreeMap<AttributeName, AttributeValue>,
    /// The run whose child it is.
    pub parent: Option<RunId>,
    /// Its place among the attempts at it (W77).
    pub attempts: RunAttempts,
    /// The caller's key, or the one that is derived for a scheduled or triggered run (W20).
    pub idempotency_key: Option<IdempotencyKey>,
    /// When it begins, in milliseconds; `None` once it has begun (W76).
    pub starts_at_ms: Option<u64>,
    /// Whether it waits for its concurrency keys (W84).
    pub is_queued: bool,
    /// When it entered its first step, in milliseconds.
    pub began_at_ms: Option<u64>,
    /// What it works on (W85).
    pub target: Option<String>,
    /// The patterns of its locks (W85).
    pub locks: Vec<String>,
    /// The ended run that it replaces (W90).
    pub retried_from: Option<RunId>,
    /// The step of that run with which it began, if that was not the first one.
    pub retried_from_step: Option<StepName>,
    /// The signature of the revision that it is pinned to (W88).
    pub signature: String,
    /// The sequence number of its last event.
    pub events_count: u64,
}

impl RunView {
    /// What the run waits for: for its beginning, or what its earliest active step waits for.
    #[must_use]
    pub fn waiting_for(&self) -> Option<WaitingFor> {
        if self.is_queued {
            return Some(WaitingFor::Concurrency);
        }
        let first = self.current_steps.first();
        let of_step = first.and_then(|step| step.waiting_for.map(|(waiting_for, _)| waiting_for));
        self.starts_at_ms.map(|_| WaitingFor::Start).or(of_step)
    }
}

/// Whether a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// It is open.
    Open,
    /// It has, and this later attempt at it is open (W77).
    Retried {
        /// The last attempt so far.
        latest: RunId,
    },
    /// It has.
    Ended(RunSummary),
}

/// The status of a run, without what its steps have returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The status.
    pub status: RunStatus,
    /// As in [`RunRow`].
    pub terminal: Option<String>,
    /// What it waits for, or why it failed (W21a).
    pub detail: Option<String>,
    /// The output, if it has ended with one.
    pub output: Option<Json>,
    /// The sequence number of its last event.
    pub events_count: u64,
}

/// A run's row in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// The version that it is pinned to.
    pub version: WorkflowVersion,
    /// The revision that it is pinned to.
    pub revision: u32,
    /// Where it stands.
    pub status: RunStatus,
    /// `flo.Completed` and so on, or the custom terminal's name (W10a).
    pub terminal: Option<String>,
    /// `api`, `child`, `schedule` or `trigger`.
    pub triggered_by: &'static str,
    /// In milliseconds.
    pub started_at_ms: u64,
    /// In milliseconds.
    pub completed_at_ms: Option<u64>,
}

/// An active step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentStep {
    /// The path of its scope; empty for the run itself (W53).
    pub scope: String,
    /// Its name.
    pub step: StepName,
    /// The visit to it in its scope, from 1.
    pub visit: u32,
    /// What kind of step it is: `run`, `wait_for_signal` or `parallel`.
    pub kind: &'static str,
    /// The attempt, from 1.
    pub attempt: u32,
    /// When its first attempt began, in milliseconds.
    pub started_at_ms: u64,
    /// What it waits for, and until when, in milliseconds.
    pub waiting_for: Option<(WaitingFor, Option<u64>)>,
}

/// What a step waits for (W21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// A signal.
    Signal,
    /// An action run, with a worker or in the queue.
    Action,
    /// A child run.
    Child,
    /// The next attempt.
    Retry,
    /// The next poll.
    Poll,
    /// The report on an accepted task (W38).
    Report,
    /// The ends of its branches (W56).
    Branches,
    /// The check of its output against a schema (W67).
    Check,
    /// A time (W59).
    Timer,
    /// A decision (W61).
    Approval,
    /// The time at which the run begins (W76).
    Start,
    /// Its concurrency keys (W84).
    Concurrency,
    /// The time at which the step is entered (W74).
    Delay,
    /// The end of what was cancelled: of a task that a worker holds, or of a child (W54).
    Cancelling,
}

/// The result of a visit to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepView {
    /// Its outcome.
    pub outcome: String,
    /// Its output; `None` if there is none, or if it is omitted.
    pub output: Option<Json>,
    /// Whether its output is left out since the response would be too large: [`step_output`](super::step_output) reads it.
    pub is_output_omitted: bool,
    /// Attempts made.
    pub attempts: u32,
    /// In milliseconds.
    pub started_at_ms: u64,
    /// In milliseconds.
    pub completed_at_ms: u64,
}

/// The run that callers of `namespace` know as `run_id`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn find_run(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<(RunNumber, RunRecord)>, StoreError> {
    let number = match run_id.generated_number() {
        Some(number) => Some(number),
        None => read::<RunNames>(reader, &(namespace.clone(), run_id.clone()))?,
    };
    let Some(number) = number else {
        return Ok(None);
    };
    let run = read::<Runs>(reader, &number)?;
    Ok(run
        // A run whose caller chose its id has no other.
        .filter(|run| run.namespace == *namespace && run.id == *run_id)
        .map(|run| (number, run)))
}

/// Whether and how a run has ended; `None` if it does not exist. Reads less than [`run`].
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn run_end(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<RunEnding>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let latest = latest_attempt(reader, &run)?.filter(|(latest, _)| *latest != number);
    let (is_retried, run) = match latest {
        Some((_, latest)) => (true, latest),
        None => (false, run),
    };
    if run.status.is_open() {
        return Ok(Some(match is_retried {
            true => RunEnding::Retried { latest: run.id },
            false => RunEnding::Open,
        }));
    }
    let terminal = match run.end.as_ref().map(|end| end.terminal) {
        Some(Target::BuiltIn(terminal)) => Some(terminal.name().to_owned()),
        Some(target) => {
            let record = definition_of(reader, &run)?;
            Some(record.definition.target_name(target))
        }
        None => None,
    };
    let output = match run.output {
        Some(output) => Some(payload(reader, output)?),
        None => None,
    };
    Ok(Some(RunEnding::Ended(RunSummary {
        status: run.status,
        terminal,
        detail: run.detail,
        output,
        events_count: run.history.events_count,
    })))
}

/// The status of a run. Reads much less than [`run`], for callers that ask after each change.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn run_summary(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<RunSummary>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let record = definition_of(reader, &run)?;
    let scoped = ScopedRun {
        number,
        record: &run,
        definition: &record.definition,
        active: &active(reader, number)?,
    };
    Ok(Some(RunSummary {
        status: run.status,
        terminal: row(&run, &record).terminal,
        detail: detail(reader, scoped)?,
        output: end_output(reader, &run)?,
        events_count: run.history.events_count,
    }))
}

/// What a run waits for, or why it failed.
fn detail(reader: &dyn Reader, run: ScopedRun<'_>) -> Result<Option<String>, StoreError> {
    match quarantine_detail(reader, run.number, run.record)? {
        Some(detail) => Ok(Some(detail)),
        None => run_detail(reader, run.record, run.active, run.definition),
    }
}

/// The output of a run that has ended with one.
fn end_output(reader: &dyn Reader, run: &RunRecord) -> Result<Option<Json>, StoreError> {
    match run.output {
        Some(output) if !run.status.is_open() => Ok(Some(payload(reader, output)?)),
        Some(_) | None => Ok(None),
    }
}

/// A run with its state, payloads and steps, and as many outputs of steps as fit into [`READ_BYTES_MAX`].
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn run(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
) -> Result<Option<RunView>, StoreError> {
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let record = definition_of(reader, &run)?;
    let definition = &record.definition;
    let parent = match run.parent {
        Some(link) => read::<Runs>(reader, &link.run)?.map(|parent| parent.id),
        None => None,
    };
    let metadata = match run.metadata {
        Some(metadata) => Some(payload(reader, metadata)?),
        None => None,
    };
    let exclusion = match run.start_limits.exclusion {
        Some(_) => read::<Exclusions>(reader, &number)?,
        None => None,
    };
    let (target, locks) = exclusion.map_or((None, Vec::new()), |own| (own.target, own.patterns));
    let (retried_from, retried_from_step) = match &run.triggered_by {
        TriggeredBy::Retry { of, from } => (Some(of.clone()), from.clone()),
        _ => (None, None),
    };
    let state = read::<States>(reader, &(number, ScopeNumber::ROOT))?;
    let active = active(reader, number)?;
    let scoped = ScopedRun {
        number,
        record: &run,
        definition,
        active: &active,
    };
    let mut view = RunView {
        row: row(&run, &record),
        detail: detail(reader, scoped)?,
        compensation: run.compensations.shown_progress(),
        phase: run.fixed_end.as_ref().map(|end| end.phase),
        error: error(reader, &run)?,
        scopes: scope_tree(reader, scoped)?,
        current_steps: current_steps(reader, scoped)?,
        current_steps_count: active.len(),
        input: payload(reader, run.input)?,
        metadata,
        output: end_output(reader, &run)?,
        state: state.map(|state| state.object),
        steps: BTreeMap::new(),
        search_attributes: attributes(&run, definition),
        parent,
        attempts: attempts(reader, &run)?,
        idempotency_key: shown_key(reader, &run)?,
        starts_at_ms: run.timers.starts_at_ms,
        is_queued: run.awaited_keys().is_some(),
        began_at_ms: run.began_at_ms,
        retried_from,
        retried_from_step,
        target: target.map(|target| target.text),
        locks,
        signature: definition.signature(),
        events_count: run.history.events_count,
    };
    view.steps = step_views(reader, scoped, READ_BYTES_MAX.saturating_sub(view.bytes()))?;
    Ok(Some(view))
}

/// Why the run has failed or timed out, or will.
fn error(reader: &dyn Reader, run: &RunRecord) -> Result<Option<Json>, StoreError> {
    let of_end = run.end.as_ref().and_then(|end| end.error.as_deref());
    let fixed = run.fixed_end.as_ref();
    let error = of_end.or_else(|| fixed.and_then(|end| end.error.as_deref()));
    error.map(|error| payload(reader, *error)).transpose()
}

/// The caller's idempotency key, or the one derived from what started the run with its first definition (W20).
fn shown_key(reader: &dyn Reader, run: &RunRecord) -> Result<Option<IdempotencyKey>, StoreError> {
    Ok(match &run.triggered_by {
        TriggeredBy::Schedule { firing_ms } => Some(IdempotencyKey::of_firing(*firing_ms)),
        TriggeredBy::Trigger { trigger, first } => {
            let definition = first_definition(reader, run)?;
            let trigger = definition
                .as_ref()
                .and_then(|first| first.trigger(*trigger));
            trigger.map(|trigger| {
                let namespace = trigger.namespace(&run.namespace);
                IdempotencyKey::of_record(namespace, &trigger.stream, *first)
            })
        }
        TriggeredBy::Caller | TriggeredBy::Parent | TriggeredBy::Retry { .. } => {
            run.idempotency_key.clone()
        }
    })
}

/// The revision to which a run is pinned.
pub(super) fn definition_of(
    reader: &dyn Reader,
    run: &RunRecord,
) -> Result<DefinitionRecord, StoreError> {
    revision_of(reader, run, run.definition)
}

/// A revision to which a run is or was pinned.
pub(super) fn revision_of(
    reader: &dyn Reader,
    run: &RunRecord,
    number: DefinitionNumber,
) -> Result<DefinitionRecord, StoreError> {
    let missing = || StoreError(format!("expected the definition of run {}", run.id).into());
    read::<Definitions>(reader, &number)?.ok_or_else(missing)
}

pub(super) fn row(run: &RunRecord, record: &DefinitionRecord) -> RunRow {
    RunRow {
        run_id: run.id.clone(),
        workflow: record.definition.name.clone(),
        version: record.definition.version.clone(),
        revision: record.revision,
        status: run.status,
        terminal: run
            .end
            .as_ref()
            .map(|end| record.definition.target_name(end.terminal)),
        triggered_by: run.triggered_by.name(),
        started_at_ms: run.started_at_ms,
        completed_at_ms: run.completed_at_ms,
    }
}

/// The open activations, in the order in which they were entered.
pub(super) fn active(
    reader: &dyn Reader,
    number: RunNumber,
) -> Result<Vec<Activation>, StoreError> {
    let mut active = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<Activations>(&number));
    visit::<Activations>(reader, &range, Order::Ascending, |_, activation| {
        active.push(activation);
        ControlFlow::Continue(())
    })?;
    Ok(active)
}

fn current_steps(reader: &dyn Reader, run: ScopedRun<'_>) -> Result<Vec<CurrentStep>, StoreError> {
    let definition = run.definition;
    let mut bytes_left = RUN_TREE_BYTES_MAX;
    let mut steps = Vec::new();
    for active in run.active {
        let waiting_for = match &active.state {
            _ if active.is_stopping() => Some((WaitingFor::Cancelling, None)),
            ActivationState::Executing => None,
            ActivationState::Signal(wait) => Some((WaitingFor::Signal, wait.deadline_at_ms)),
            ActivationState::Approval(approval) => {
                Some((WaitingFor::Approval, approval.deadline_at_ms))
            }
            ActivationState::Action(_) => Some(waiting_for_action(reader, &active.state)?),
            ActivationState::Plan(plan) => match plan.wait {
                PlanWait::Executing => None,
                PlanWait::Action(_) => Some(waiting_for_action(reader, &active.state)?),
                PlanWait::Retry { due_ms } => Some((WaitingFor::Retry, Some(due_ms))),
            },
            ActivationState::Child(_) | ActivationState::ChildInput { .. } => {
                Some((WaitingFor::Child, None))
            }
            ActivationState::Timer { due_ms } => Some((WaitingFor::Timer, Some(*due_ms))),
            ActivationState::Delay { due_ms } => Some((WaitingFor::Delay, Some(*due_ms))),
            ActivationState::OutputCheck(_) => Some((WaitingFor::Check, None)),
            ActivationState::Retry { due_ms } => Some((WaitingFor::Retry, Some(*due_ms))),
            ActivationState::Poll { due_ms } => Some((WaitingFor::Poll, Some(*due_ms))),
            ActivationState::Branches(_) | ActivationState::Iterations(_) => {
                Some((WaitingFor::Branches, None))
            }
        };
        let step = definition.step(active.step);
        let kind = match active.call.is_compensation() {
            true => "compensation",
            false => step.kind.name(),
        };
        let scope = match &active.undone {
            Some(undone) => Some(undone.scope.path.clone()),
            None => read::<Scopes>(reader, &(run.number, active.scope))?.map(|open| open.id.path),
        };
        let current = CurrentStep {
            scope: scope.map_or_else(String::new, |path| scope_path::to_text(definition, &path)),
            step: step.name.clone(),
            visit: active.visit,
            kind,
            attempt: active.attempt,
            started_at_ms: active.started_at_ms,
            waiting_for,
        };
        let Some(left) = bytes_left.checked_sub(current.bytes()) else {
            break;
        };
        bytes_left = left;
        steps.push(current);
    }
    Ok(steps)
}

/// A leased task is waited for until its lease ends, an accepted one until its report is overdue.
fn waiting_for_action(
    reader: &dyn Reader,
    state: &ActivationState,
) -> Result<(WaitingFor, Option<u64>), StoreError> {
    let action_run = awaited(reader, state)?;
    let report = action_run.as_ref().and_then(|record| record.report);
    if let Some(report) = report {
        return Ok((WaitingFor::Report, report.deadline_at_ms));
    }
    let lease = action_run.and_then(|record| record.lease);
    Ok((
        WaitingFor::Action,
        lease.and_then(|lease| lease.ends_at_ms()),
    ))
}

/// The action run that an active step waits for.
pub(super) fn awaited(
    reader: &dyn Reader,
    state: &ActivationState,
) -> Result<Option<ActionRunRecord>, StoreError> {
    match state.action_run() {
        Some(number) => read::<ActionRuns>(reader, &number),
        None => Ok(None),
    }
}

fn attributes(run: &RunRecord, definition: &Definition) -> BTreeMap<AttributeName, AttributeValue> {
    (0..)
        .zip(&definition.search_attributes)
        .filter_map(|(position, attribute)| {
            let value = run.attributes.get(&position)?;
            Some((attribute.name.clone(), value.clone()))
        })
        .collect()
}
