//! A task is given to the worker that it was assigned to, and to no other (A4).

use crate::record::Events;

pub(super) fn check(events: &Events) -> Vec<String> {
    let wrong = events.begun.iter().filter_map(|(token, processes)| {
        let mut assigned = events
            .assigned
            .iter()
            .filter(|((_, known), _)| known == token);
        let worker = assigned.next().and_then(|(_, said)| said.first());
        let is_right = |(begun, _): &(_, u64)| worker.is_some_and(|known| known.worker == *begun);
        let is_one = processes.len() == 1 && processes.iter().all(is_right);
        (!is_one).then(|| {
            format!("expected {token} to be begun by its worker only, but it was by {processes:?}")
        })
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Assigned;
    use flotilla_engine::TaskToken;
    use flotilla_engine::ids::{ActionRunNumber, WorkerId};
    use std::collections::BTreeSet;

    fn broken_by(workers: &[&str]) -> usize {
        let token = TaskToken {
            action_run: ActionRunNumber(1),
            attempt: 1,
            secret: 11,
        };
        let id = |name: &&str| (WorkerId::new(*name).unwrap(), 7);
        let mut events = Events::default();
        let assigned = Assigned {
            worker: WorkerId::new("a").unwrap(),
            token,
            now_ms: 0,
            lease_expires_at_ms: 3_000,
        };
        events.assigned.insert((5, token), vec![assigned]);
        let processes: BTreeSet<_> = workers.iter().map(id).collect();
        events.begun.insert(token, processes);
        check(&events).len()
    }

    #[test]
    fn a_task_that_another_worker_begins_is_found() {
        assert_eq!(broken_by(&["a"]), 0);
        assert_eq!(broken_by(&["b"]), 1);
        assert_eq!(broken_by(&["a", "b"]), 1);
    }
}
