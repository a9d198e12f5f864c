//! Reads the metrics of tasks, workers and the quarantine from the node's state.

use crate::limits::{METRIC_ACTIONS_MAX, METRIC_LEASES_MAX, METRIC_ROWS_MAX};
use crate::workers::ActionKey;
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError};
use flotilla_engine::tables::{
    ActionRuns, Cluster, ClusterRecord, LabelQueues, ProcessKind, Quarantine, QuarantinedKind,
    ReadyActions, Table, WorkerActivities, WorkerLeases, WorkerStatus, Workers, encode_prefix,
    read, visit,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The label of all actions without their own series.
const OTHERS: &str = "*";
/// A worker's status, as in the manual.
const STATUSES: [&str; 4] = ["idle", "active", "draining", "unhealthy"];

/// The metrics from the state. Tables are read up to a limit, so that a scrape cannot keep a node
/// busy for long; rows beyond the limit are missing.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) cluster: ClusterRecord,
    pub(super) ready: ByAction,
    pub(super) leased: ByAction,
    /// Ready tasks whose action no worker handles.
    pub(super) unserved: ByAction,
    /// Workers by status.
    pub(super) workers: BTreeMap<&'static str, u64>,
    /// Quarantined items by kind.
    pub(super) quarantined: BTreeMap<&'static str, u64>,
}

/// Tasks by action.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ByAction(BTreeMap<(String, String), u64>);

/// The counts over the workers of all namespaces.
#[derive(Default)]
struct WorkerCounts {
    by_status: BTreeMap<&'static str, u64>,
    leases_count: u64,
    /// The actions of healthy workers that take tasks.
    served: BTreeSet<(Namespace, String)>,
}

impl State {
    /// Reads the metrics.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(super) fn read(reader: &dyn Reader) -> Result<Self, StoreError> {
        let worker_counts = worker_counts(reader)?;
        let ready = ready(reader)?;
        let is_unserved = |key: &ActionKey| {
            let (namespace, action) = key;
            let named = (namespace.clone(), action.to_string());
            !worker_counts.served.contains(&named)
        };
        let unserved = ready
            .clone()
            .into_iter()
            .filter(|(key, _)| is_unserved(key));
        Ok(Self {
            cluster: read::<Cluster>(reader, &())?.unwrap_or_default(),
            unserved: ByAction::new(unserved.collect(), 0),
            ready: ByAction::new(ready, 0),
            leased: leased(reader, worker_counts.leases_count)?,
            quarantined: quarantined(reader)?,
            workers: worker_counts.by_status,
        })
    }
}

impl ByAction {
    /// The actions with the most tasks, and one sum of all others and of tasks whose action is
    /// unknown.
    fn new(tasks: BTreeMap<ActionKey, u64>, unknown: u64) -> Self {
        let mut sorted: Vec<_> = tasks.into_iter().filter(|(_, count)| *count > 0).collect();
        sorted.sort_by_key(|(_, count)| Reverse(*count));
        let others = sorted.split_off(METRIC_ACTIONS_MAX.min(sorted.len()));
        let rest = unknown + others.into_iter().map(|(_, count)| count).sum::<u64>();
        let names = |(namespace, action): ActionKey| (namespace.to_string(), action.to_string());
        let mut shown: BTreeMap<_, _> = sorted
            .into_iter()
            .map(|(key, count)| (names(key), count))
            .collect();
        if rest > 0 {
            shown.insert((OTHERS.to_owned(), OTHERS.to_owned()), rest);
        }
        Self(shown)
    }

    /// The samples, by namespace and action.
    pub(super) fn samples(&self) -> impl Iterator<Item = ([&str; 2], u64)> {
        let samples = self.0.iter();
        samples.map(|((namespace, action), count)| ([namespace.as_str(), action.as_str()], *count))
    }
}

/// Waiting tasks by action.
fn ready(reader: &dyn Reader) -> Result<BTreeMap<ActionKey, u64>, StoreError> {
    let mut ready: BTreeMap<ActionKey, u64> = BTreeMap::new();
    each::<ReadyActions>(reader, |key, record| {
        *ready.entry(key).or_default() += record.tasks_count;
        Ok(())
    })?;
    each::<LabelQueues>(reader, |(namespace, action, _), record| {
        *ready.entry((namespace, action)).or_default() += record.waiting_count;
        Ok(())
    })?;
    Ok(ready)
}

/// Leased tasks by action; the action of those beyond the limit is unknown.
fn leased(reader: &dyn Reader, leases_count: u64) -> Result<ByAction, StoreError> {
    let mut leased: BTreeMap<ActionKey, u64> = BTreeMap::new();
    let mut looked_up = 0;
    each_of::<WorkerLeases>(reader, METRIC_LEASES_MAX, |(_, task), ()| {
        looked_up += 1;
        if let Some(run) = read::<ActionRuns>(reader, &task)? {
            *leased.entry((run.namespace, run.action)).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(ByAction::new(
        leased,
        leases_count.saturating_sub(looked_up),
    ))
}

fn worker_counts(reader: &dyn Reader) -> Result<WorkerCounts, StoreError> {
    let mut worker_counts = WorkerCounts {
        by_status: STATUSES.into_iter().map(|status| (status, 0)).collect(),
        ..WorkerCounts::default()
    };
    each::<Workers>(reader, |key, worker| {
        let Some(activity) = read::<WorkerActivities>(reader, &key)? else {
            return Ok(());
        };
        *worker_counts
            .by_status
            .entry(activity.published_status())
            .or_default() += 1;
        if activity.status == WorkerStatus::Healthy {
            let actions = worker.processes.into_iter();
            let actions = actions.filter(|process| process.kind == ProcessKind::Action);
            let served = actions.map(|process| (key.0.clone(), process.name));
            worker_counts.served.extend(served);
        }
        worker_counts.leases_count += u64::from(activity.leases_count);
        Ok(())
    })?;
    Ok(worker_counts)
}

fn quarantined(reader: &dyn Reader) -> Result<BTreeMap<&'static str, u64>, StoreError> {
    let kinds = QuarantinedKind::ALL.into_iter();
    let mut found: BTreeMap<_, _> = kinds.map(|kind| (kind.name(), 0)).collect();
    each::<Quarantine>(reader, |(kind, _), _| {
        *found.entry(kind.name()).or_default() += 1;
        Ok(())
    })?;
    Ok(found)
}

/// Visits the first rows of a table.
fn each<T: Table>(
    reader: &dyn Reader,
    take: impl FnMut(T::Key, T::Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    each_of::<T>(reader, METRIC_ROWS_MAX, take)
}

/// Visits at most `count_max` rows of a table.
fn each_of<T: Table>(
    reader: &dyn Reader,
    count_max: usize,
    mut take: impl FnMut(T::Key, T::Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all = KeyRange::prefix(&encode_prefix::<T>(&()));
    let (mut count, mut taken) = (0, Ok(()));
    visit::<T>(reader, &all, Order::Ascending, |key, record| {
        count += 1;
        taken = take(key, record);
        if taken.is_err() || count == count_max {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::ActionName;

    fn key(number: usize) -> ActionKey {
        let action = ActionName::new(format!("action-{number}")).unwrap();
        (Namespace::default_namespace(), action)
    }

    #[test]
    fn the_actions_with_the_most_tasks_are_told_apart_and_the_others_are_one() {
        let counts = (0..METRIC_ACTIONS_MAX + 2).map(|number| (key(number), number as u64));
        let shown = ByAction::new(counts.collect(), 10);
        let samples: BTreeMap<_, _> = shown.samples().collect();
        assert_eq!(samples.len(), METRIC_ACTIONS_MAX + 1);
        // An action without tasks is omitted.
        assert_eq!(samples[&[OTHERS, OTHERS]], 1 + 10);
        let last = format!("action-{}", METRIC_ACTIONS_MAX + 1);
        assert_eq!(
            samples[&["default", last.as_str()]],
            METRIC_ACTIONS_MAX as u64 + 1
        );
    }
}
