//! Which schedule is live, and whether it fires (W5, W42).

use super::due::{ScheduleKey, arm, block, disarm, is_armed};
use crate::definition::Schedule;
use crate::store::StoreError;
use crate::tables::{
    DefinitionNumber, LiveSchedule, NextFiring, ScheduleRecord, Schedules, Workflows,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::{key_of, pinned};
use std::sync::Arc;

/// A revision became the latest: its schedule is the live one, or there is none (W5). In the entry
/// of the create, so that no firing can fall between the old schedule and the new one.
pub(crate) fn make_live(
    turn: &mut Turn<'_, '_>,
    key: &ScheduleKey,
    definition: DefinitionNumber,
) -> Outcome<()> {
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
    let latest = pinned(turn, definition)?;
    let schedule = latest.definition.schedule.as_ref();
    let live = schedule.map(|schedule| LiveSchedule {
        definition,
        is_paused: schedule.paused,
        next: NextFiring::Unplanned { from_ms },
    });
    if record.live.is_none() && live.is_none() {
        return Ok(());
    }
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

/// The workflow is enabled: its schedule fires, even one that began paused (W42). What it missed is
/// made up as far as its `catchup_window_ms` reaches back (W40). Saying it twice changes nothing.
pub(crate) fn enable(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Outcome<()> {
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

/// The workflow is disabled: its schedule stands still (W42).
pub(crate) fn disable(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Outcome<()> {
    if let Some(live) = load(turn, key)?.live {
        disarm(turn, key, &live);
    }
    Ok(())
}

/// The schedule of a revision was set aside: it no longer fires (design rule 10).
pub(crate) fn set_aside(
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

/// The schedule of a revision is taken up: it fires again, if it is live still and does not stand still for
/// another reason.
pub(crate) fn take_up(turn: &mut Turn<'_, '_>, definition: DefinitionNumber) -> Outcome<()> {
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

/// A run that a firing started has ended.
///
/// # Panics
/// When no such run was open: each is counted once.
pub(crate) fn run_ended(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<(), StoreError> {
    let mut record = load(turn, key)?;
    let open_count = record.open_count.checked_sub(1);
    record.open_count = open_count.expect("an open run of a schedule is counted");
    turn.put::<Schedules>(key, record);
    Ok(())
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

fn is_enabled(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<bool, StoreError> {
    let workflow = turn.get::<Workflows>(key)?;
    Ok(workflow.is_some_and(|workflow| workflow.is_enabled))
}

fn load(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<ScheduleRecord, StoreError> {
    let record = turn.get::<Schedules>(key)?;
    Ok(record.map(Arc::unwrap_or_clone).unwrap_or_default())
}
