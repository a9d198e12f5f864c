//! The timers of steps that wait for a time, and those of runs (W73).

use super::rows;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    ActivationState, PendingWorks, PlanWait, Runs, TimerKey, TimerKind, Timers, Work,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// Whether a step waits for a retry, a poll or a time that comes then.
pub(super) fn wakes(state: Option<&ActivationState>, due_ms: u64) -> bool {
    match state {
        Some(
            ActivationState::Retry { due_ms: due }
            | ActivationState::Poll { due_ms: due }
            | ActivationState::Timer { due_ms: due },
        ) => *due == due_ms,
        Some(ActivationState::Plan(plan)) => plan.wait == PlanWait::Retry { due_ms },
        _ => false,
    }
}

/// An open run with a timeout has its timer, and nothing else has one.
pub(super) fn check(store: &MemoryStore) {
    let timers = rows::<Timers>(store, &())
        .into_iter()
        .map(|(timer, ())| timer);
    let timers = timers.filter(|timer| timer.kind == TimerKind::RunTimeout);
    let mut due: BTreeMap<RunNumber, u64> = timers
        .map(
            |TimerKey {
                 subject, due_ms, ..
             }| (RunNumber(subject), due_ms),
        )
        .collect();
    for (number, run) in rows::<Runs>(store, &()) {
        let due_ms = due.remove(&number);
        let works = rows::<PendingWorks>(store, &number);
        let has_timed_out = works.iter().any(|(_, work)| *work == Work::TimeOut);
        if has_timed_out {
            assert!(due_ms.is_none(), "{}", run.id);
        } else {
            assert_eq!(run.times_out_at_ms, due_ms, "{}", run.id);
        }
        let is_open = run.status.is_open();
        assert!(run.times_out_at_ms.is_none() || is_open, "{}", run.id);
    }
    assert!(due.is_empty(), "{due:?}");
}
