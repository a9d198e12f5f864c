//! Counts tasks, workers and quarantined items over all namespaces, for metrics.
//!
//! Each function visits at most as many rows as its caller allows, so that a scrape cannot keep a node busy for long;
//! rows beyond that are not counted.

use crate::ids::{ActionName, Namespace};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRuns, LabelQueues, LeaseBlock, ProcessKind, Quarantine, QuarantinedKind, ReadyActions,
    Table, WorkerActivities, WorkerLeases, WorkerStatus, Workers, encode_prefix, read, visit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Numbers of tasks by namespace and action.
pub type TasksByAction = BTreeMap<(Namespace, ActionName), u64>;

/// Leased tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasedCounts {
    /// Those whose action was looked up.
    pub by_action: TasksByAction,
    /// How many leases were visited, those of deleted action runs included.
    pub visited: u64,
}

/// Counts over the workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerTotals {
    /// Workers by published status.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The tasks that they hold.
    pub leases_count: u64,
    /// The actions that a healthy worker takes tasks of.
    pub served: BTreeSet<(Namespace, ActionName)>,
}

/// Counts the ready tasks of each action.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn count_ready(reader: &dyn Reader, rows_max: usize) -> Result<TasksByAction, StoreError> {
    let mut ready = TasksByAction::new();
    visit_first::<ReadyActions>(reader, rows_max, |key, record| {
        *ready.entry(key).or_default() += record.tasks_count;
        Ok(())
    })?;
    visit_first::<LabelQueues>(reader, rows_max, |(namespace, action, _), record| {
        *ready.entry((namespace, action)).or_default() += record.waiting_count;
        Ok(())
    })?;
    Ok(ready)
}

/// Counts the leased tasks of each action.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn count_leased(reader: &dyn Reader, leases_max: usize) -> Result<LeasedCounts, StoreError> {
    let visited_max = leases_max as u64;
    let mut leased = LeasedCounts::default();
    let take = |(_, block): (_, LeaseBlock), tasks| {
        for place in block.places(tasks) {
            if leased.visited == visited_max {
                break;
            }
            leased.visited += 1;
            if let Some(run) = read::<ActionRuns>(reader, &place.task)? {
                *leased
                    .by_action
                    .entry((run.namespace, run.action))
                    .or_default() += 1;
            }
        }
        Ok(())
    };
    visit_first::<WorkerLeases>(reader, leases_max, take)?;
    Ok(leased)
}

/// Counts the workers, their tasks and their actions.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn count_workers(reader: &dyn Reader, rows_max: usize) -> Result<WorkerTotals, StoreError> {
    let mut totals = WorkerTotals::default();
    visit_first::<Workers>(reader, rows_max, |key, worker| {
        let Some(activity) = read::<WorkerActivities>(reader, &key)? else {
            return Ok(());
        };
        let status = activity.published_status();
        *totals.by_status.entry(status).or_default() += 1;
        totals.leases_count += u64::from(activity.leases_count);
        if activity.status == WorkerStatus::Healthy {
            let actions = worker.processes.into_iter();
            let actions = actions.filter(|process| process.kind == ProcessKind::Action);
            let actions = actions.filter_map(|process| ActionName::new(process.name).ok());
            totals
                .served
                .extend(actions.map(|action| (key.0.clone(), action)));
        }
        Ok(())
    })?;
    Ok(totals)
}

/// Counts the quarantined items of each kind; kinds without items are missing.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn count_quarantined(
    reader: &dyn Reader,
    rows_max: usize,
) -> Result<BTreeMap<QuarantinedKind, u64>, StoreError> {
    let mut quarantined = BTreeMap::new();
    visit_first::<Quarantine>(reader, rows_max, |(kind, _), _| {
        *quarantined.entry(kind).or_default() += 1;
        Ok(())
    })?;
    Ok(quarantined)
}

/// Visits at most `rows_max` rows of a table.
fn visit_first<T: Table>(
    reader: &dyn Reader,
    rows_max: usize,
    mut take: impl FnMut(T::Key, T::Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all = KeyRange::prefix(&encode_prefix::<T>(&()));
    let (mut count, mut taken) = (0, Ok(()));
    visit::<T>(reader, &all, Order::Ascending, |key, record| {
        count += 1;
        taken = take(key, record);
        if taken.is_err() || count == rows_max {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    taken
}
