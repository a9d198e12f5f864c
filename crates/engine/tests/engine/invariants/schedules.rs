//! Invariants of the schedule tables.

use super::{read, rows};
use flotilla_engine::rows::{
    Definitions, Quarantine, QuarantinedKind, RunRecord, Runs, Schedules, SchedulesDue,
    TriggeredBy, Workflows,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeSet;

/// Panics unless every schedule that fires is due once, and counts its open runs.
pub(super) fn check(store: &MemoryStore) {
    let runs = rows::<Runs>(store, &());
    let mut expected = BTreeSet::new();
    for (key, record) in rows::<Schedules>(store, &()) {
        let workflow = read::<Workflows>(store, &key).expect("a schedule has a workflow");
        let latest = read::<Definitions>(store, &workflow.latest).expect("a latest revision");
        let schedule = latest.definition.schedule;
        assert_eq!(record.live.is_some(), schedule.is_some(), "{key:?}");
        let is_open = |run: &RunRecord| {
            run.status.is_open()
                && run.namespace == key.0
                && matches!(run.triggered_by, TriggeredBy::Schedule { .. })
                && read::<Definitions>(store, &run.definition)
                    .is_some_and(|record| record.definition.name == key.1)
        };
        let open = runs.iter().filter(|(_, run)| is_open(run));
        assert_eq!(record.open_count as usize, open.clone().count(), "{key:?}");
        let quarantined = open.filter(|(number, _)| {
            read::<Quarantine>(store, &(QuarantinedKind::Run, number.0)).is_some()
        });
        let quarantined_count = quarantined.count();
        assert_eq!(
            record.quarantined_count as usize, quarantined_count,
            "{key:?}"
        );
        let Some(live) = record.live else { continue };
        assert_eq!(live.definition, workflow.latest, "{key:?}");
        let quarantined = (QuarantinedKind::Schedule, live.definition.0);
        let is_quarantined = read::<Quarantine>(store, &quarantined).is_some();
        let fires = workflow.is_enabled && !live.is_paused && !is_quarantined;
        if let Some(due_ms) = live.next.due_ms().filter(|_| fires) {
            expected.insert((due_ms, key.0, key.1));
        }
    }
    let due = rows::<SchedulesDue>(store, &()).into_iter();
    let due: BTreeSet<_> = due.map(|(key, ())| key).collect();
    assert_eq!(due, expected, "the schedules that fire");
}
