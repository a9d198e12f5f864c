//! What a leader's driver would propose for a schedule, and what it never should.

use super::player::default_key;
use crate::invariants::{read, rows};
use flotilla_engine::rows::{DefinitionNumber, NextFiring, Schedules, SchedulesDue};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{Body, FireSchedule, SetNextFiring};

/// The definition of the scheduled workflow, whose content is one of a few.
pub(super) fn definition(is_paused: bool, catchup_ms: u64) -> String {
    let paused = if is_paused { " paused" } else { "" };
    format!(
        "define timed 2\n schedule every 150{paused} catchup={catchup_ms}\n \
         start: wait go -> success=flo.Completed"
    )
}

/// The next command for a schedule that is due, or was: with `is_wrong`, one that another leader
/// has already carried out, or that names another time.
pub(super) fn command(store: &MemoryStore, pick: u8, forward_ms: u64, is_wrong: bool) -> Body {
    let due = rows::<SchedulesDue>(store, &());
    let position = usize::from(pick) % due.len().max(1);
    let key = due.get(position).map_or_else(
        || default_key("timed"),
        |((_, namespace, workflow), ())| (namespace.clone(), workflow.clone()),
    );
    let live = read::<Schedules>(store, &key).and_then(|record| record.live);
    let definition = live.map_or(DefinitionNumber(1), |live| live.definition);
    let next = live.map_or(NextFiring::Never, |live| live.next);
    let expected_ms = next.due_ms().unwrap_or(0) + u64::from(is_wrong && pick.is_multiple_of(2));
    let next_ms = (!pick.is_multiple_of(16)).then_some(expected_ms + forward_ms);
    let workflow = key.1;
    if matches!(next, NextFiring::At { .. }) != (is_wrong && pick % 2 == 1) {
        Body::FireSchedule(FireSchedule {
            workflow,
            definition,
            expected_ms,
            next_ms,
        })
    } else {
        Body::SetNextFiring(SetNextFiring {
            workflow,
            definition,
            expected_ms,
            next_ms,
        })
    }
}
