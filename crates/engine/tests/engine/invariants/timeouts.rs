//! The timers of steps that wait for a time, and those of runs (W73).

use super::{read, rows};
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, OverdueStep, PendingWorks, PlanWait, Quarantine,
    QuarantinedKind, RunStatus, Runs, StepTimeout, TimerKey, TimerKind, Timers, Work,
};
use flotilla_engine::store::MemoryStore;
use std::collections::BTreeMap;

/// Whether a step waits for a retry, a poll or a time that comes then.
pub(super) fn wakes(state: Option<&ActivationState>, due_ms: u64) -> bool {
    match state {
        Some(
            ActivationState::Retry { due_ms: due }
            | ActivationState::Poll { due_ms: due }
            | ActivationState::Timer { due_ms: due }
            | ActivationState::Delay { due_ms: due },
        ) => *due == due_ms,
        Some(ActivationState::Plan(plan)) => plan.wait == PlanWait::Retry { due_ms },
        _ => false,
    }
}

/// Whether a run begins then (W76).
pub(super) fn begins(store: &MemoryStore, timer: &TimerKey) -> bool {
    let run = read::<Runs>(store, &RunNumber(timer.subject));
    run.is_some_and(|run| {
        run.timers.starts_at_ms == Some(timer.due_ms) && run.status == RunStatus::Pending
    })
}

/// Whether the step has the deadline that a timer is set for (W70).
pub(super) fn has_step_timer(active: Option<&Activation>, timer: &TimerKey) -> bool {
    active.is_some_and(|active| {
        let due_ms = match timer.kind {
            TimerKind::StepTotal => active.timeouts.total_ends_at_ms,
            _ => active.timeouts.attempt_ends_at_ms,
        };
        due_ms == Some(timer.due_ms)
    })
}

/// Each deadline of a step has its timer, unless that has fired and what follows is deferred or the run is quarantined.
fn check_steps(store: &MemoryStore) {
    for ((run, number), active) in rows::<Activations>(store, &()) {
        if read::<Quarantine>(store, &(QuarantinedKind::Run, run.0)).is_some() {
            continue;
        }
        let works = rows::<PendingWorks>(store, &run);
        let deadlines = [
            (
                TimerKind::StepTotal,
                StepTimeout::Total,
                active.timeouts.total_ends_at_ms,
            ),
            (
                TimerKind::StepAttempt,
                StepTimeout::Attempt,
                active.timeouts.attempt_ends_at_ms,
            ),
        ];
        for (kind, timeout, due_ms) in deadlines {
            let Some(due_ms) = due_ms else {
                continue;
            };
            let key = TimerKey {
                kind,
                due_ms,
                subject: run.0,
                detail: number,
            };
            let overdue = Work::TimeOutStep(OverdueStep {
                activation: number,
                due_ms,
                timeout,
            });
            let is_set = read::<Timers>(store, &key).is_some();
            let is_deferred = works.iter().any(|(_, work)| *work == overdue);
            assert!(is_set || is_deferred, "{run:?} {active:?}");
        }
    }
}

/// An open run with a timeout has its timer, and nothing else has one.
pub(super) fn check(store: &MemoryStore) {
    check_steps(store);
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
            assert_eq!(run.timers.times_out_at_ms, due_ms, "{}", run.id);
        }
        let is_pending = run.status == RunStatus::Pending && run.active_count == 0;
        assert!(
            run.timers.starts_at_ms.is_none() || is_pending,
            "{} has begun",
            run.id
        );
        if let Some(due_ms) = run.timers.starts_at_ms
            && read::<Quarantine>(store, &(QuarantinedKind::Run, number.0)).is_none()
        {
            let key = TimerKey {
                kind: TimerKind::RunStart,
                due_ms,
                subject: number.0,
                detail: 0,
            };
            assert!(read::<Timers>(store, &key).is_some(), "{} begins", run.id);
        }
        let is_open = run.status.is_open();
        assert!(
            run.timers.times_out_at_ms.is_none() || is_open,
            "{}",
            run.id
        );
    }
    assert!(due.is_empty(), "{due:?}");
}
