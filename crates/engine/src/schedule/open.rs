//! Counts the open runs of a schedule: firings are skipped at `max_concurrent` of them (W40).
//!
//! A quarantined run is open but does nothing. It is counted separately, so that one contained bug does not stop the
//! schedule until an operator intervenes (design rule 10). While it is quarantined, no command ends it; once released,
//! it counts again, even if that temporarily exceeds `max_concurrent`.

use super::due::ScheduleKey;
use super::live::load;
use crate::ids::RunNumber;
use crate::store::StoreError;
use crate::tables::{Definitions, RunRecord, Schedules, TriggeredBy};
use crate::turn::Turn;

/// A run that a firing started has ended.
///
/// # Panics
/// When no such run was open: each is counted once.
pub(crate) fn run_ended(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<(), StoreError> {
    let mut record = load(turn, key)?;
    let open_count = record.open_count.checked_sub(1);
    record.open_count = open_count.expect("an open run of a schedule is counted");
    assert!(
        record.quarantined_count <= record.open_count,
        "a quarantined run does not end"
    );
    turn.put::<Schedules>(key, record);
    Ok(())
}

/// A run that a firing started, and that had ended, is resumed (W89).
pub(crate) fn run_resumed(turn: &mut Turn<'_, '_>, key: &ScheduleKey) -> Result<(), StoreError> {
    let mut record = load(turn, key)?;
    record.open_count += 1;
    turn.put::<Schedules>(key, record);
    Ok(())
}

/// A run is quarantined, which was not before: if a firing started it and it is open, it counts apart.
pub(crate) fn run_quarantined(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
) -> Result<(), StoreError> {
    let Some(run) = turn.run_record(number)? else {
        return Ok(());
    };
    let Some(key) = key_of(turn, &run)? else {
        return Ok(());
    };
    let mut record = load(turn, &key)?;
    record.quarantined_count += 1;
    assert!(
        record.quarantined_count <= record.open_count,
        "an open run of a schedule is counted"
    );
    turn.put::<Schedules>(&key, record);
    Ok(())
}

/// A quarantined run is released, as it was when it was quarantined.
///
/// # Panics
/// When it was not counted apart.
pub(crate) fn run_released(turn: &mut Turn<'_, '_>, run: &RunRecord) -> Result<(), StoreError> {
    let Some(key) = key_of(turn, run)? else {
        return Ok(());
    };
    let mut record = load(turn, &key)?;
    let quarantined_count = record.quarantined_count.checked_sub(1);
    record.quarantined_count = quarantined_count.expect("a quarantined run counts apart");
    turn.put::<Schedules>(&key, record);
    Ok(())
}

/// The schedule that counts the run, if one does.
fn key_of(turn: &mut Turn<'_, '_>, run: &RunRecord) -> Result<Option<ScheduleKey>, StoreError> {
    let is_counted = run.status.is_open()
        && match run.triggered_by {
            TriggeredBy::Schedule { .. } => true,
            TriggeredBy::Caller
            | TriggeredBy::Parent
            | TriggeredBy::Trigger { .. }
            | TriggeredBy::Retry { .. } => false,
        };
    if !is_counted {
        return Ok(None);
    }
    let revision = turn.get::<Definitions>(&run.definition)?;
    let revision = revision.expect("a definition is kept as long as its runs");
    let workflow = revision.definition.name.clone();
    Ok(Some((run.namespace.clone(), workflow)))
}
