//! Liveness: once all faults are healed, every node soon serves again, and all work in progress ends.

use crate::node::Machine;
use crate::record::Events;
use flotilla_engine::rows::{ActionRuns, Runs, encode_prefix, visit};
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError};
use flotilla_engine::view::DueCursor;
use std::ops::ControlFlow;

/// Whether one node leads, and every other one follows it and can be read.
pub(crate) fn all_serve(machines: &[Machine]) -> bool {
    let replicas: Option<Vec<_>> = machines.iter().map(Machine::replica).collect();
    let Some(replicas) = replicas else {
        return false;
    };
    let leaders = replicas.iter().filter_map(|replica| {
        let leadership = replica.leadership().borrow().clone();
        Some((leadership.leader?.node_id, leadership.term))
    });
    let mut leaders: Vec<_> = leaders.collect();
    let is_known_to_all = leaders.len() == machines.len();
    leaders.dedup();
    let is_one = leaders.len() == 1;
    let is_ready = |replica: &flotilla_replica::Replica| replica.leadership().borrow().is_ready;
    is_known_to_all
        && is_one
        && replicas.iter().any(|replica| is_ready(replica))
        && replicas.iter().all(|replica| replica.is_readable())
}

/// Whether no caller waits for a response.
pub(crate) fn all_answered(events: &Events) -> bool {
    let mut operations = events.operations.iter();
    operations.all(|operation| operation.returned_ms.is_some())
}

/// Whether all work in progress has ended, and all nodes know it.
pub(crate) fn all_ended(machines: &[Machine]) -> bool {
    let progress = machines
        .iter()
        .map(|machine| Some(machine.replica()?.applied_position()));
    let progress: Option<Vec<_>> = progress.collect();
    let is_same = progress.is_some_and(|all| all.iter().all(|one| *one == all[0]));
    is_same
        && machines
            .iter()
            .all(|machine| open_count(machine) == Some(0))
}

/// What is still open when the time is over.
pub(crate) fn judge(
    machines: &[Machine],
    served_ms: Option<u64>,
    served_ms_max: u64,
) -> Vec<String> {
    let mut broken = Vec::new();
    if served_ms.is_none_or(|served_ms| served_ms > served_ms_max) {
        broken.push(format!(
            "expected all nodes to serve within {served_ms_max} ms, but it took {served_ms:?}"
        ));
    }
    if !all_ended(machines) {
        let stands = |machine: &Machine| {
            let progress = machine
                .replica()
                .map(|replica| replica.applied_position().0);
            format!(
                "node {} at {progress:?}, {:?} open",
                machine.host,
                open_count(machine)
            )
        };
        let stands: Vec<String> = machines.iter().map(stands).collect();
        broken.push(format!(
            "expected all work in progress to end on all nodes, but: {}",
            stands.join("; ")
        ));
    }
    broken
}

/// How many runs and action runs are open, and triggers have records, according to a node; `None` if it cannot be read.
fn open_count(machine: &Machine) -> Option<u64> {
    let counted = machine.replica()?.view(|view| count_open(view));
    counted.ok()?.ok()
}

fn count_open(reader: &dyn Reader) -> Result<u64, StoreError> {
    let mut count = 0;
    let all = KeyRange::prefix(&encode_prefix::<Runs>(&()));
    visit::<Runs>(reader, &all, Order::Ascending, |_, run| {
        count += u64::from(run.status.is_open());
        ControlFlow::Continue(())
    })?;
    let all = KeyRange::prefix(&encode_prefix::<ActionRuns>(&()));
    visit::<ActionRuns>(reader, &all, Order::Ascending, |_, action_run| {
        count += u64::from(action_run.status.is_open());
        ControlFlow::Continue(())
    })?;
    let due = DueCursor::default().due_triggers(reader, u64::MAX, 1)?;
    Ok(count + due.triggers.len() as u64)
}
