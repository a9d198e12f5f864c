//! No task is held by two workers (A4).
//!
//! A task that a worker holds is assigned to another only after the lease has expired by the time of the log, after
//! the worker has reported a failure, or after a new process of the same worker has registered. And all
//! nodes report the same worker for each assignment.

use crate::record::{Assigned, Events, Outcome};
use flotilla_engine::ids::{ActionRunNumber, WorkerId};
use flotilla_engine::{Body, Reply, TaskToken, reply};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(events: &Events) -> Vec<String> {
    let mut broken = Vec::new();
    let mut tasks: BTreeMap<ActionRunNumber, Vec<&Assigned>> = BTreeMap::new();
    for ((index, token), said) in &events.assigned {
        if said.iter().any(|other| *other != said[0]) {
            broken.push(format!(
                "nodes differ in who got {token} by entry {index}: {said:?}"
            ));
        }
        tasks.entry(token.action_run).or_default().push(&said[0]);
    }
    let reports = Reports::of(events);
    for assigned in tasks.values() {
        for (held, given) in assigned.iter().zip(assigned.iter().skip(1)) {
            if !reports.may_follow(held, given) {
                broken.push(format!(
                    "expected the lease of {held:?} to end before {given:?} begins"
                ));
            }
        }
    }
    broken
}

/// The reports of workers that end a lease early.
struct Reports {
    failed: BTreeSet<TaskToken>,
    /// When the lease that a worker was granted ends, in milliseconds.
    extended: BTreeMap<TaskToken, u64>,
    /// How often each worker has registered.
    registered: BTreeMap<WorkerId, u64>,
}

impl Reports {
    fn of(events: &Events) -> Self {
        let mut reports = Self {
            failed: BTreeSet::new(),
            extended: BTreeMap::new(),
            registered: BTreeMap::new(),
        };
        for operation in &events.operations {
            match (&operation.command.body, &operation.outcome) {
                (Body::FailTask(fail), outcome) if *outcome != Outcome::NotDone => {
                    reports.failed.insert(fail.token);
                }
                (Body::RegisterWorker(register), _) => {
                    let worker = register.worker_id.clone();
                    *reports.registered.entry(worker).or_default() += 1;
                }
                (
                    Body::TouchTask(touch),
                    Outcome::Acknowledged(Reply::LeaseExtended(reply::LeaseExtended {
                        expires_at_ms,
                    })),
                ) => {
                    let until_ms = reports.extended.entry(touch.token).or_default();
                    *until_ms = (*until_ms).max(*expires_at_ms);
                }
                _ => {}
            }
        }
        reports
    }

    fn may_follow(&self, held: &Assigned, given: &Assigned) -> bool {
        let extended_ms = self.extended.get(&held.token).copied().unwrap_or(0);
        let is_expired = held.lease_expires_at_ms.max(extended_ms) <= given.now_ms;
        // A release assigns the same attempt to another worker, with another secret.
        let is_release = held.token.attempt == given.token.attempt
            && self
                .registered
                .get(&held.worker)
                .is_some_and(|count| *count > 1);
        is_expired || is_release || self.failed.contains(&held.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(worker: &str, attempt: u32, secret: u64, times_ms: (u64, u64)) -> Assigned {
        Assigned {
            worker: WorkerId::new(worker).unwrap(),
            token: TaskToken {
                action_run: ActionRunNumber(1),
                attempt,
                secret,
            },
            now_ms: times_ms.0,
            lease_expires_at_ms: times_ms.1,
        }
    }

    fn broken_by(second: Assigned) -> usize {
        let mut events = Events::default();
        let first = assigned("a", 1, 11, (0, 3_000));
        events.assigned.insert((5, first.token), vec![first]);
        events.assigned.insert((9, second.token), vec![second]);
        check(&events).len()
    }

    #[test]
    fn a_second_holder_before_the_lease_has_ended_is_found() {
        assert_eq!(broken_by(assigned("b", 2, 12, (3_000, 6_000))), 0);
        assert_eq!(broken_by(assigned("b", 2, 12, (2_999, 6_000))), 1);
        assert_eq!(broken_by(assigned("b", 1, 12, (100, 3_100))), 1);
    }
}
