//! Reads the worker registry (A20).

use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::{ActionName, ActionRunNumber, Namespace, NodeId, WorkerId};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRuns, Namespaces, Process, ProcessKind, ProcessRecord, WorkerActivities,
    WorkerActivityRecord, WorkerLeases, WorkerProcesses, WorkerRecord, WorkerStatus, Workers,
    encode_prefix, read, visit,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A worker.
#[derive(Clone, Debug)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its registration.
    pub record: WorkerRecord,
    /// Its activity.
    pub activity: WorkerActivityRecord,
}

/// A worker with the counts of what it has registered.
#[derive(Clone, Debug)]
pub struct WorkerWithCounts {
    /// The worker.
    pub worker: WorkerView,
    /// The counts of each of its processes.
    pub counts: BTreeMap<Process, ProcessRecord>,
}

/// The worker `id`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn worker(
    reader: &dyn Reader,
    namespace: &Namespace,
    id: &WorkerId,
) -> Result<Option<WorkerView>, StoreError> {
    let key = (namespace.clone(), id.clone());
    let record = read::<Workers>(reader, &key)?;
    let activity = read::<WorkerActivities>(reader, &key)?;
    let view = record.zip(activity);
    Ok(view.map(|(record, activity)| WorkerView {
        id: id.clone(),
        record,
        activity,
    }))
}

/// The worker `id` with its counts.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn worker_with_counts(
    reader: &dyn Reader,
    namespace: &Namespace,
    id: &WorkerId,
) -> Result<Option<WorkerWithCounts>, StoreError> {
    let Some(worker) = worker(reader, namespace, id)? else {
        return Ok(None);
    };
    let mut counts = BTreeMap::new();
    let prefix = encode_prefix::<WorkerProcesses>(&(namespace.clone(), id.clone()));
    let range = KeyRange::prefix(&prefix);
    visit::<WorkerProcesses>(reader, &range, Order::Ascending, |(.., process), record| {
        counts.insert(process, record);
        ControlFlow::Continue(())
    })?;
    Ok(Some(WorkerWithCounts { worker, counts }))
}

/// The tasks that a worker holds (A4). Those that a former process of it left behind are not among them.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn leased_tasks(
    reader: &dyn Reader,
    worker: &WorkerView,
) -> Result<Vec<ActionRunNumber>, StoreError> {
    let mut tasks = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<WorkerLeases>(&worker.activity.number));
    visit::<WorkerLeases>(reader, &range, Order::Ascending, |(_, block), set| {
        tasks.extend(block.places(set).map(|place| place.task));
        ControlFlow::Continue(())
    })?;
    Ok(tasks)
}

/// Whether a worker holds a task (A4).
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn is_leased(
    reader: &dyn Reader,
    worker: &WorkerView,
    task: ActionRunNumber,
) -> Result<bool, StoreError> {
    let action_run = read::<ActionRuns>(reader, &task)?;
    let lease = action_run.and_then(|action_run| action_run.lease);
    Ok(lease.is_some_and(|lease| lease.holder == worker.activity.number))
}

/// The workers of a namespace by id.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn workers(
    reader: &dyn Reader,
    namespace: &Namespace,
    range: PageRange<'_>,
) -> Result<Page<WorkerWithCounts>, StoreError> {
    let prefix = prefix::<Workers>(namespace);
    page::<Workers, _>(
        reader,
        &Scope::new(&prefix, range),
        |reader, (namespace, id), _| worker_with_counts(reader, &namespace, &id),
    )
}

/// The namespaces in which a node is registered as the worker `id`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn namespaces_of_node(
    reader: &dyn Reader,
    node: NodeId,
    id: &WorkerId,
) -> Result<Vec<Namespace>, StoreError> {
    let mut keys = Vec::new();
    let all = KeyRange::prefix(&encode_prefix::<Namespaces>(&()));
    visit::<Namespaces>(reader, &all, Order::Ascending, |namespace, _| {
        keys.push((namespace, id.clone()));
        ControlFlow::Continue(())
    })?;
    let mut found = Vec::new();
    for key in keys {
        let worker = read::<Workers>(reader, &key)?;
        if worker.is_some_and(|worker| worker.node == Some(node)) {
            found.push(key.0);
        }
    }
    Ok(found)
}

/// Whether a healthy worker that does not drain handles the action (W21a).
pub(super) fn has_live_worker(
    reader: &dyn Reader,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<bool, StoreError> {
    let range = KeyRange::prefix(&encode_prefix::<Workers>(namespace));
    let mut is_live = false;
    let mut failure = None;
    visit::<Workers>(reader, &range, Order::Ascending, |key, record| {
        let handles = record
            .processes
            .iter()
            .any(|process| process.kind == ProcessKind::Action && process.name == action.as_str());
        if !handles {
            return ControlFlow::Continue(());
        }
        match read::<WorkerActivities>(reader, &key) {
            Ok(activity) => {
                is_live = activity.is_some_and(|activity| activity.status == WorkerStatus::Healthy);
            }
            Err(error) => failure = Some(error),
        }
        if is_live || failure.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    failure.map_or(Ok(is_live), Err)
}
