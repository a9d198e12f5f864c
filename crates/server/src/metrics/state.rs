//! What the node's state says of tasks, workers and what is set aside.

use crate::limits::{METRIC_ACTIONS_MAX, METRIC_LEASES_MAX, METRIC_ROWS_MAX};
use crate::workers::ActionKey;
use flotilla_engine::ids::{ActionRunNumber, Namespace};
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError};
use flotilla_engine::tables::{
    ActionRuns, Cluster, ClusterRecord, LabelQueues, ProcessKind, Quarantine, QuarantinedKind,
    ReadyActions, Table, WorkerActivities, WorkerState, Workers, encode_prefix, read, visit,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Stands for all that are not told apart.
const OTHERS: &str = "*";
/// A worker's status, in the manual's words.
const STATUSES: [&str; 4] = ["idle", "active", "draining", "unhealthy"];

/// What the state says. Tables are read up to a bound, so that whoever asks cannot make a node busy
/// for long; what lies behind the bound is missing.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) cluster: ClusterRecord,
    pub(super) ready: ByAction,
    pub(super) leased: ByAction,
    /// Ready tasks whose action no worker handles.
    pub(super) unserved: ByAction,
    /// Workers by status.
    pub(super) workers: BTreeMap<&'static str, u64>,
    /// What is set aside, by kind.
    pub(super) quarantined: BTreeMap<&'static str, u64>,
}

/// Tasks by action.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ByAction(BTreeMap<(String, String), u64>);

/// What is known of the workers of all namespaces.
#[derive(Default)]
struct Workforce {
    by_status: BTreeMap<&'static str, u64>,
    leases: Vec<ActionRunNumber>,
    /// Leases that were too many to look at.
    leases_left: u64,
    /// What workers that are heard and take tasks handle.
    served: BTreeSet<(Namespace, String)>,
}

impl State {
    /// Reads it.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    pub(super) fn read(reader: &dyn Reader) -> Result<Self, StoreError> {
        let workforce = workforce(reader)?;
        let ready = ready(reader)?;
        let is_unserved = |key: &ActionKey| {
            let (namespace, action) = key;
            let named = (namespace.clone(), action.to_string());
            !workforce.served.contains(&named)
        };
        let unserved = ready
            .clone()
            .into_iter()
            .filter(|(key, _)| is_unserved(key));
        Ok(Self {
            cluster: read::<Cluster>(reader, &())?.unwrap_or_default(),
            unserved: ByAction::new(unserved.collect(), 0),
            ready: ByAction::new(ready, 0),
            leased: leased(reader, &workforce)?,
            quarantined: quarantined(reader)?,
            workers: workforce.by_status,
        })
    }
}

impl ByAction {
    /// The actions with the most, and one sum of the others and of what is not known by action.
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

/// Tasks that wait, by action.
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

/// Tasks that workers have, by action.
fn leased(reader: &dyn Reader, workforce: &Workforce) -> Result<ByAction, StoreError> {
    let mut leased: BTreeMap<ActionKey, u64> = BTreeMap::new();
    for number in &workforce.leases {
        if let Some(run) = read::<ActionRuns>(reader, number)? {
            *leased.entry((run.namespace, run.action)).or_default() += 1;
        }
    }
    Ok(ByAction::new(leased, workforce.leases_left))
}

fn workforce(reader: &dyn Reader) -> Result<Workforce, StoreError> {
    let mut workforce = Workforce {
        by_status: STATUSES.into_iter().map(|status| (status, 0)).collect(),
        ..Workforce::default()
    };
    each::<Workers>(reader, |key, worker| {
        let Some(activity) = read::<WorkerActivities>(reader, &key)? else {
            return Ok(());
        };
        *workforce.by_status.entry(activity.status()).or_default() += 1;
        if activity.state == WorkerState::Healthy && !activity.is_draining {
            let actions = worker.processes.into_iter();
            let actions = actions.filter(|process| process.kind == ProcessKind::Action);
            let served = actions.map(|process| (key.0.clone(), process.name));
            workforce.served.extend(served);
        }
        for lease in activity.leases {
            if workforce.leases.len() < METRIC_LEASES_MAX {
                workforce.leases.push(lease);
            } else {
                workforce.leases_left += 1;
            }
        }
        Ok(())
    })?;
    Ok(workforce)
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
    mut take: impl FnMut(T::Key, T::Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all = KeyRange::prefix(&encode_prefix::<T>(&()));
    let (mut count, mut taken) = (0, Ok(()));
    visit::<T>(reader, &all, Order::Ascending, |key, record| {
        count += 1;
        taken = take(key, record);
        if taken.is_err() || count == METRIC_ROWS_MAX {
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
        // The one without any is left out.
        assert_eq!(samples[&[OTHERS, OTHERS]], 1 + 10);
        let last = format!("action-{}", METRIC_ACTIONS_MAX + 1);
        assert_eq!(
            samples[&["default", last.as_str()]],
            METRIC_ACTIONS_MAX as u64 + 1
        );
    }
}
