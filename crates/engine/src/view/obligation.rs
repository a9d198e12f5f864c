//! Reads the obligations that the leader's drivers fulfill (design rule 6).

use super::action::owner_of;
use super::run_definitions::KnownDefinitions;
use super::{cluster, payload};
use crate::definition::{StepIndex, Tracking};
use crate::effect::Assignment;
use crate::ids::{ActionName, ActionRunNumber, Namespace, NodeId, RunNumber, WorkerId};
use crate::json::Json;
use crate::request;
use crate::run::{LOCKS_CHECK, RUN_OUTPUT_CHECK, run_output_attempt};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRunOwner, ActionRunStatus, ActionRuns, ActivationState, Activations, DefinitionNumber,
    Definitions, Exclusions, LabelQueues, LabelSet, ReadyActions, RequestAges, RunRecord, Runs,
    SchemaChecks, WorkerActivities, Workers, encode_key, encode_prefix, range_from, read, visit,
};
use crate::task::{TaskToken, tracking_of};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Whether a task of the action waits for a worker.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn has_ready(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<bool, StoreError> {
    let waiting = read::<ReadyActions>(reader, &(namespace.clone(), action.clone()))?;
    Ok(waiting.is_some_and(|waiting| !waiting.is_idle()))
}

/// Whether a task of the action waits that a worker with one of these label sets may take (A3).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn has_ready_for<'l>(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
    workers: impl IntoIterator<Item = &'l BTreeMap<String, String>>,
) -> Result<bool, StoreError> {
    let key = (namespace.clone(), action.clone());
    let waiting = read::<ReadyActions>(reader, &key)?.unwrap_or_default();
    let workers: Vec<_> = workers.into_iter().collect();
    if waiting.tasks_count > 0 && !workers.is_empty() {
        return Ok(true);
    }
    for position in waiting.label_queues_waiting.iter() {
        let queue = read::<LabelQueues>(reader, &(key.0.clone(), key.1.clone(), position))?;
        let labels = LabelSet(queue.map(|queue| queue.labels).unwrap_or_default());
        if workers.iter().any(|worker| labels.is_subset_of(worker)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The assignment of a leased task, to be handed out again, with its input; `None` if its lease is suspended.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn assignment(
    reader: &dyn Reader,
    number: ActionRunNumber,
) -> Result<Option<(Assignment, Json)>, StoreError> {
    let Some(record) = read::<ActionRuns>(reader, &number)? else {
        return Ok(None);
    };
    let Some(lease) = record
        .lease
        .as_ref()
        .filter(|lease| record.status == ActionRunStatus::Running && !lease.is_suspended())
    else {
        return Ok(None);
    };
    let token = TaskToken {
        action_run: number,
        attempt: record.attempt,
        secret: lease.proof.secret,
    };
    let (run_id, step) = owner_of(reader, &record, &mut KnownDefinitions::default())?.unzip();
    let input = payload(reader, record.input)?;
    let assignment = Assignment {
        token,
        namespace: record.namespace.clone(),
        action: record.action.clone(),
        input: record.input,
        lease_expires_at_ms: lease.expires_at_ms,
        timeout_ms: record.timeout_ms,
        created_at_ms: record.created_at_ms,
        run_id,
        step: step.flatten(),
        labels: record.labels.clone(),
        is_cancelled: record.is_cancelling,
        tracking: tracking(reader, record.owner)?,
    };
    Ok(Some((assignment, input)))
}

/// How the outcome of a task of `owner` is reported (W38).
fn tracking(reader: &dyn Reader, owner: ActionRunOwner) -> Result<Tracking, StoreError> {
    let ActionRunOwner::Step { run, activation } = owner else {
        return Ok(Tracking::Sync);
    };
    let active = read::<Activations>(reader, &(run, activation))?;
    let Some(run) = read::<Runs>(reader, &run)? else {
        return Ok(Tracking::Sync);
    };
    let record = read::<Definitions>(reader, &run.definition)?;
    Ok(record
        .zip(active)
        .map_or(Tracking::Sync, |(record, active)| {
            tracking_of(&record.definition, &active)
        }))
}

/// Embedded workers of nodes other than `node` that are not known to be gone, with their process:
/// a leader releases those of dead nodes (A4).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workers_of_other_nodes(
    reader: &dyn Reader,
    node: NodeId,
) -> Result<Vec<(Namespace, WorkerId, NodeId, u64)>, StoreError> {
    let mut found = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<Workers>(&()));
    visit::<Workers>(
        reader,
        &range,
        Order::Ascending,
        |(namespace, id), record| {
            if let Some(owner) = record.node.filter(|owner| *owner != node) {
                found.push((namespace, id, owner, record.incarnation));
            }
            ControlFlow::Continue(())
        },
    )?;
    let mut live = Vec::new();
    for (namespace, id, owner, incarnation) in found {
        let activity = read::<WorkerActivities>(reader, &(namespace.clone(), id.clone()))?;
        if activity.is_some_and(|activity| activity.status.is_healthy()) {
            live.push((namespace, id, owner, incarnation));
        }
    }
    Ok(live)
}

/// Whether request ids are past their window, so that a sweep is due (design rule 9).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn has_expired_requests(reader: &dyn Reader, now_ms: u64) -> Result<bool, StoreError> {
    let range = range_from::<RequestAges>(&(), &cluster(reader)?.requests_first);
    let mut is_expired = false;
    visit::<RequestAges>(reader, &range, Order::Ascending, |_, oldest| {
        is_expired = request::is_past(oldest.at_ms, now_ms);
        ControlFlow::Break(())
    })?;
    Ok(is_expired)
}

/// Activations that wait for the check of a value against a schema (W4, W67), each with its run, and runs that wait for
/// their locks (W85), with [`LOCKS_CHECK`] instead of an activation: at most `limit`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn schema_checks(
    reader: &dyn Reader,
    limit: usize,
) -> Result<Vec<(RunNumber, u64)>, StoreError> {
    let mut checks = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<SchemaChecks>(&()));
    visit::<SchemaChecks>(reader, &range, Order::Ascending, |check, ()| {
        checks.push(check);
        if checks.len() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(checks)
}

/// The locks of a run that are to be compiled.
#[derive(Clone, Debug)]
pub struct LocksCheck {
    /// Where the verdict is sent.
    pub namespace: Namespace,
    /// Their patterns.
    pub patterns: Vec<String>,
}

/// The locks that are to be compiled for `run`, if it still waits for them.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn locks_check(reader: &dyn Reader, run: RunNumber) -> Result<Option<LocksCheck>, StoreError> {
    let check = encode_key::<SchemaChecks>(&(run, LOCKS_CHECK));
    if reader.get(&check)?.is_none() {
        return Ok(None);
    }
    let (record, own) = (
        read::<Runs>(reader, &run)?,
        read::<Exclusions>(reader, &run)?,
    );
    Ok(record.zip(own).map(|(record, own)| LocksCheck {
        namespace: record.namespace,
        patterns: own.patterns,
    }))
}

/// Which schema of a definition a value is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaOf {
    /// That of the input of its runs (W4).
    Input,
    /// That of the output of a step (W67).
    Output(StepIndex),
    /// That of the output of its runs (W67).
    RunOutput,
}

/// What a verdict on a value is made of.
#[derive(Clone, Debug)]
pub struct SchemaCheck {
    /// The attempt that the value is of.
    pub attempt: u32,
    /// The definition that has the schema.
    pub definition: DefinitionNumber,
    /// Which one of its schemas it is.
    pub of: SchemaOf,
    /// Where the verdict is sent.
    pub namespace: Namespace,
    /// The schema.
    pub schema: String,
    /// The value.
    pub value: Json,
}

/// The check that an activation of `run` waits for, if it still does.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn schema_check(
    reader: &dyn Reader,
    run: RunNumber,
    activation: u64,
) -> Result<Option<SchemaCheck>, StoreError> {
    let check = (run, activation);
    if reader.get(&encode_key::<SchemaChecks>(&check))?.is_none() {
        return Ok(None);
    }
    let Some(record) = read::<Runs>(reader, &run)? else {
        return Ok(None);
    };
    if activation == RUN_OUTPUT_CHECK {
        return run_output_check(reader, record).map(Some);
    }
    let Some(active) = read::<Activations>(reader, &check)? else {
        return Ok(None);
    };
    let (definition, of, value) = match &active.state {
        ActivationState::ChildInput { definition } => {
            (*definition, SchemaOf::Input, Some(active.input))
        }
        ActivationState::OutputCheck(unchecked) => {
            let of = SchemaOf::Output(active.step);
            (record.definition, of, unchecked.output)
        }
        _ => return Ok(None),
    };
    let value = match value {
        Some(value) => payload(reader, value)?,
        None => Json::null(),
    };
    Ok(Some(SchemaCheck {
        attempt: active.attempts_count(),
        definition,
        of,
        namespace: record.namespace,
        schema: schema(reader, definition, of)?,
        value,
    }))
}

/// The check of the output of a run, which waits for it.
fn run_output_check(reader: &dyn Reader, run: RunRecord) -> Result<SchemaCheck, StoreError> {
    let of = SchemaOf::RunOutput;
    Ok(SchemaCheck {
        attempt: run_output_attempt(&run),
        definition: run.definition,
        of,
        schema: schema(reader, run.definition, of)?,
        value: match run.output {
            Some(output) => payload(reader, output)?,
            None => Json::null(),
        },
        namespace: run.namespace,
    })
}

/// A schema of a definition. If the workflow was deleted meanwhile, any verdict lets the engine say so.
fn schema(
    reader: &dyn Reader,
    definition: DefinitionNumber,
    of: SchemaOf,
) -> Result<String, StoreError> {
    let record = read::<Definitions>(reader, &definition)?;
    let schema = record.and_then(|record| match of {
        SchemaOf::Input => record.definition.input_schema,
        SchemaOf::Output(step) => {
            let output = record.definition.step(step).output();
            output.and_then(|output| output.schema.clone())
        }
        SchemaOf::RunOutput => record.definition.output?.schema,
    });
    Ok(schema.unwrap_or_else(|| "true".to_owned()))
}
