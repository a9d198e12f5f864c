//! Reads the metrics of tasks, workers and the quarantine from the node's state.

use crate::limits::{METRIC_ACTIONS_MAX, METRIC_LEASES_MAX, METRIC_ROWS_MAX};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, TasksByAction};
use flotilla_engine::{ClusterRecord, ClusterSettingsRecord, QuarantinedKind};
use flotilla_leader::ActionKey;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The label of all actions without their own series.
const OTHERS: &str = "*";
/// A worker's status, as in the manual.
const STATUSES: [&str; 4] = ["idle", "active", "draining", "unhealthy"];

/// The metrics from the state. Tables are read up to a limit, so that a scrape cannot keep a node
/// busy for long; rows beyond the limit are missing.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) cluster: ClusterRecord,
    pub(super) settings: ClusterSettingsRecord,
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

impl State {
    /// Reads the metrics.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(super) fn read(reader: &dyn Reader) -> Result<Self, StoreError> {
        let workers = view::count_workers(reader, METRIC_ROWS_MAX)?;
        let ready = view::count_ready(reader, METRIC_ROWS_MAX)?;
        let unserved = ready.clone().into_iter();
        let unserved = unserved.filter(|(key, _)| !workers.served.contains(key));
        let leased = view::count_leased(reader, METRIC_LEASES_MAX)?;
        let unknown = workers.leases_count.saturating_sub(leased.visited);
        Ok(Self {
            cluster: view::cluster(reader)?,
            settings: view::cluster_settings(reader)?,
            unserved: ByAction::new(unserved.collect(), 0),
            ready: ByAction::new(ready, 0),
            leased: ByAction::new(leased.by_action, unknown),
            quarantined: quarantined(reader)?,
            workers: by_status(&workers.by_status),
        })
    }
}

impl ByAction {
    /// The actions with the most tasks, and one sum of all others and of tasks whose action is
    /// unknown.
    fn new(tasks: TasksByAction, unknown: u64) -> Self {
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

/// The numbers of workers, with a zero for each status that no worker has.
fn by_status(found: &BTreeMap<&'static str, u64>) -> BTreeMap<&'static str, u64> {
    let count = |status| found.get(status).copied().unwrap_or_default();
    let statuses = STATUSES.into_iter();
    statuses.map(|status| (status, count(status))).collect()
}

fn quarantined(reader: &dyn Reader) -> Result<BTreeMap<&'static str, u64>, StoreError> {
    let found = view::count_quarantined(reader, METRIC_ROWS_MAX)?;
    let count = |kind| found.get(&kind).copied().unwrap_or_default();
    let kinds = QuarantinedKind::ALL.into_iter();
    Ok(kinds.map(|kind| (kind.name(), count(kind))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{ActionName, Namespace};

    fn key(number: usize) -> ActionKey {
        let action = ActionName::new(format!("action-{number}")).unwrap();
        (Namespace::default_namespace(), action)
    }

    #[test]
    fn the_actions_with_the_most_tasks_are_listed_and_the_others_are_summed() {
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
