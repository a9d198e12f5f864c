//! Which schedule of a workflow is live, and whether it fires (W5, W42).

use super::due::{ScheduleKey, arm, block, disarm, is_armed};
use crate::definition::Schedule;
use crate::quota::QuotaDimension;
use crate::store::StoreError;
use crate::tables::{
    DefinitionNumber, LiveSchedule, NextFiring, ScheduleRecord, Schedules, Workflows,
};
use crate::turn::{Turn, TurnResult};
use crate::workflow::key_of;
use std::sync::Arc;

/// Makes a new latest revision's schedule the live one, if it has one (W5). This happens in the entry of the create, so
/// that no firing is lost between the old schedule and the new one.
pub(crate) fn make_live(
    turn: &mut Turn<'_, '_>,
    key: &ScheduleKey,
    definition: DefinitionNumber,
) -> TurnResult<()> {
    let mut record = load(turn, key)?;
    if record
        .live
        .is_some_and(|live| live.definition == definition)
    {
        return Ok(());
    }
    if let Some(old) = &record.live {
        disarm(turn, key, old);
    }
    let from_ms = turn.now_ms();
    let latest = turn.pinned(definition)?;
    let schedule = latest.definition.schedule.as_ref();
    let live = schedule.map(|schedule| LiveSchedule {
        definition,
        is_paused: schedule.paused,
        next: NextFiring::Unplanned { from_ms },
    });
    if record.live.is_none() && live.is_none() {
        return Ok(());
    }
    let by = i64::from(live.is_some()) - i64::from(record.live.is_some());
    turn.note_use(&key.0, QuotaDimension::Schedules, by);
    record.live = live;
    turn.put::<Schedules>(key, record);
    match live {
        Some(live) if !live.is_paused && is_enabled(turn, key)? => {
            arm(turn, key, &live);
            Ok(())
        }
        Some(_) | None => Ok(()),
    }
}

/// Resumes the schedule of an enabled workflow, even one that was created paused (W42). Missed firings are made up as
/// far as `catchup_window_ms` reaches back (W40). Idempotent.
pub(crate) fn enable(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> TurnResult<()> {
    let record = load(turn, key)?;
    let Some(live) = record.live else {
        return Ok(());
    };
    if is_armed(turn, key, &live)? {
        return Ok(());
    }
    let schedule = block(turn, &live)?;
    let live = LiveSchedule {
        is_paused: false,
        next: resumed(live.next, &schedule, turn.now_ms()),
        ..live
    };
    arm(turn, key, &live);
    let live = Some(live);
    if live != record.live {
        turn.put::<Schedules>(key, ScheduleRecord { live, ..record });
    }
    Ok(())
}

/// Stops the schedule of a disabled workflow (W42).
pub(crate) fn disable(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> TurnResult<()> {
    if let Some(live) = load(turn, key)?.live {
        disarm(turn, key, &live);
    }
    Ok(())
}

/// Ends the schedule of a workflow that is deleted; it has no runs.
pub(crate) fn delete(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> TurnResult<()> {
    disable(turn, key)?;
    if is_live(turn, key)? {
        turn.note_use(&key.0, QuotaDimension::Schedules, -1);
    }
    turn.delete::<Schedules>(key);
    Ok(())
}

/// Stops the schedule of a quarantined revision (design rule 10).
pub(crate) fn quarantine(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> Result<(), StoreError> {
    let Some(key) = key_of(turn, definition)? else {
        return Ok(());
    };
    match load(turn, &key)?.live {
        Some(live) if live.definition == definition => disarm(turn, &key, &live),
        Some(_) | None => {}
    }
    Ok(())
}

/// Resumes the schedule of a released revision, if it is still live and not stopped for another reason.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> TurnResult<()> {
    let Some(key) = key_of(turn, definition)? else {
        return Ok(());
    };
    match load(turn, &key)?.live {
        Some(live) if live.definition == definition && !live.is_paused => {
            if is_enabled(turn, &key)? {
                enable(turn, &key)?;
            }
            Ok(())
        }
        Some(_) | None => Ok(()),
    }
}

/// What a schedule that stood still does next.
fn resumed(next: NextFiring, schedule: &Schedule, now_ms: u64) -> NextFiring {
    match next {
        NextFiring::At { due_ms } if due_ms > now_ms => next,
        NextFiring::At { due_ms: since_ms } | NextFiring::Unplanned { from_ms: since_ms } => {
            let window_begins_ms = now_ms.saturating_sub(schedule.catchup_window_ms);
            let from_ms = since_ms.max(window_begins_ms);
            NextFiring::Unplanned { from_ms }
        }
        NextFiring::Never => next,
    }
}

/// Whether the latest revision of the workflow has a schedule.
pub(crate) fn is_live(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<bool, StoreError> {
    Ok(load(turn, key)?.live.is_some())
}

fn is_enabled(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<bool, StoreError> {
    let workflow = turn.get::<Workflows>(key)?;
    Ok(workflow.is_some_and(|workflow| workflow.is_enabled))
}

/// The schedule of a workflow; an empty one where it never had any.
pub(super) fn load(
    turn: &mut Turn<'_, '_>,
    key: &ScheduleKey,
) -> Result<ScheduleRecord, StoreError> {
    let record = turn.get::<Schedules>(key)?;
    Ok(record.map(Arc::unwrap_or_clone).unwrap_or_default())
}
