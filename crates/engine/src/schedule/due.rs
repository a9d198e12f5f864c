//! Due rows of schedules, and checks of the commands that act on them.

use crate::definition::Schedule;
use crate::effect::Effect;
use crate::ids::{Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{DefinitionNumber, LiveSchedule, ScheduleRecord, Schedules, SchedulesDue};
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// Whose schedule.
pub(super) type ScheduleKey = (Namespace, WorkflowName);

/// Adds the schedule to the due ones, unless it never fires again or is quarantined.
pub(super) fn arm(turn: &mut Turn<'_, '_>, key: &ScheduleKey, live: &LiveSchedule) {
    if turn.is_schedule_quarantined(live.definition) {
        return;
    }
    if let Some(due_ms) = live.next.due_ms() {
        turn.put::<SchedulesDue>(&(due_ms, key.0.clone(), key.1.clone()), ());
        turn.effect(Effect::ArmSchedule { due_ms });
    }
}

/// Removes the schedule from the due ones.
pub(super) fn disarm(turn: &mut Turn<'_, '_>, key: &ScheduleKey, live: &LiveSchedule) {
    if let Some(due_ms) = live.next.due_ms() {
        turn.delete::<SchedulesDue>(&(due_ms, key.0.clone(), key.1.clone()));
    }
}

/// Whether the schedule is among the due ones.
pub(super) fn is_armed(
    turn: &mut Turn<'_, '_>,
    key: &ScheduleKey,
    live: &LiveSchedule,
) -> Result<bool, StoreError> {
    let Some(due_ms) = live.next.due_ms() else {
        return Ok(false);
    };
    let row = (due_ms, key.0.clone(), key.1.clone());
    Ok(turn.get::<SchedulesDue>(&row)?.is_some())
}

/// The live revision's schedule block.
///
/// # Panics
/// If the revision has no schedule: only revisions with one are live.
pub(super) fn block(turn: &mut Turn<'_, '_>, live: &LiveSchedule) -> TurnResult<Schedule> {
    let revision = turn.pinned(live.definition)?;
    let schedule = revision.definition.schedule.clone();
    Ok(schedule.expect("the live schedule is that of its definition"))
}

/// The schedule that waits for `expected_ms`, with its live part.
///
/// # Errors
/// [`Rejection::FiringStale`] if it waits for another time, belongs to another revision or does not fire;
/// [`Rejection::FiringNotDue`] if the time has not come.
pub(super) fn expected(
    turn: &mut Turn<'_, '_>,
    key: &ScheduleKey,
    definition: DefinitionNumber,
    expected_ms: u64,
) -> TurnResult<(ScheduleRecord, LiveSchedule)> {
    let gone = || Rejection::FiringStale(key.1.clone());
    let record = turn.get::<Schedules>(key)?.ok_or_else(gone)?;
    let live = record.live.ok_or_else(gone)?;
    let is_named = live.definition == definition && live.next.due_ms() == Some(expected_ms);
    if !is_named || !is_armed(turn, key, &live)? {
        return Err(gone().into());
    }
    if expected_ms > turn.now_ms() {
        return Err(Rejection::FiringNotDue.into());
    }
    Ok((Arc::unwrap_or_clone(record), live))
}
