//! Reads schedules, for callers and for the leader's driver (W40).

use super::due::DueCursor;
use super::is_quarantined;
use crate::definition::Schedule;
use crate::ids::{Namespace, RunId, WorkflowName, WorkflowVersion};
use crate::store::{Reader, StoreError};
use crate::tables::{
    DefinitionNumber, DefinitionRecord, Definitions, FiringRecord, LiveSchedule, NextFiring,
    QuarantinedKind, ScheduleRecord, Schedules, SchedulesDue, Workflows, read,
};

/// A workflow's schedule as `flo workflow schedule` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleView {
    /// What the latest revision says.
    pub schedule: Schedule,
    /// The latest revision's version.
    pub version: WorkflowVersion,
    /// The latest revision.
    pub revision: u32,
    /// When the latest revision was created: an interval's grid begins here. In milliseconds.
    pub created_at_ms: u64,
    /// Whether it fires.
    pub state: ScheduleState,
    /// The next firing, in milliseconds; `None` while it does not fire or is not planned yet.
    pub next_ms: Option<u64>,
    /// Open runs that it started.
    pub open_count: u32,
    /// Those of them that are quarantined: they do not count towards `max_concurrent`.
    pub quarantined_count: u32,
    /// Firings that started a run.
    pub fired_count: u64,
    /// Firings that found `max_concurrent` open runs.
    pub skipped_count: u64,
    /// The last firing that started a run, and that run.
    pub last_fired: Option<(FiringRecord, RunId)>,
    /// The last firing that was skipped, in milliseconds.
    pub last_skipped_ms: Option<u64>,
}

/// Whether a schedule fires, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleState {
    /// It fires.
    Active,
    /// It began paused and was not enabled yet.
    Paused,
    /// Its workflow is disabled (W42).
    Disabled,
    /// It is quarantined (design rule 10).
    Quarantined,
}

impl ScheduleState {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
            Self::Quarantined => "quarantined",
        }
    }
}

/// The schedule of a workflow's latest revision, if it has one.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn schedule(
    reader: &dyn Reader,
    namespace: &Namespace,
    workflow: &WorkflowName,
) -> Result<Option<ScheduleView>, StoreError> {
    let key = (namespace.clone(), workflow.clone());
    let Some(record) = read::<Schedules>(reader, &key)? else {
        return Ok(None);
    };
    let Some((live, definition, schedule)) = live(reader, &record)? else {
        return Ok(None);
    };
    let is_enabled = read::<Workflows>(reader, &key)?.is_some_and(|workflow| workflow.is_enabled);
    let quarantined = (QuarantinedKind::Schedule, live.definition.0);
    let state = if is_quarantined(reader, quarantined)? {
        ScheduleState::Quarantined
    } else if !is_enabled {
        ScheduleState::Disabled
    } else if live.is_paused {
        ScheduleState::Paused
    } else {
        ScheduleState::Active
    };
    let next_ms = match live.next {
        NextFiring::At { due_ms } if state == ScheduleState::Active => Some(due_ms),
        NextFiring::At { .. } | NextFiring::Unplanned { .. } | NextFiring::Never => None,
    };
    let last_fired = record.last_fired;
    Ok(Some(ScheduleView {
        schedule,
        version: definition.definition.version,
        revision: definition.revision,
        created_at_ms: definition.created_at_ms,
        state,
        next_ms,
        open_count: record.open_count,
        quarantined_count: record.quarantined_count,
        fired_count: record.fired_count,
        skipped_count: record.skipped_count,
        last_fired: last_fired.map(|firing| (firing, RunId::generated(firing.run))),
        last_skipped_ms: record.last_skipped_ms,
    }))
}

/// Schedules that the driver must look at, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueSchedules {
    /// Those that are due, the earliest first.
    pub schedules: Vec<DueSchedule>,
    /// When the next one that is not due yet will be, in milliseconds.
    pub next_due_ms: Option<u64>,
}

/// A schedule that waits to be planned or fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueSchedule {
    /// The namespace of the workflow.
    pub namespace: Namespace,
    /// The workflow that the schedule belongs to.
    pub workflow: WorkflowName,
    /// The revision that is to be asked.
    pub definition: DefinitionNumber,
    /// When that revision was created: an interval's grid begins here. In milliseconds.
    pub created_at_ms: u64,
    /// What that revision says.
    pub schedule: Schedule,
    /// What it waits for.
    pub next: NextFiring,
}

impl DueCursor {
    /// The schedules that are due at `now_ms`, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn due_schedules(
        &mut self,
        reader: &dyn Reader,
        now_ms: u64,
        limit: usize,
    ) -> Result<DueSchedules, StoreError> {
        let (keys, next_due_ms) = self.read::<SchedulesDue, _>(reader, now_ms, limit)?;
        let mut schedules = Vec::with_capacity(keys.len());
        for (namespace, workflow) in keys {
            let key = (namespace, workflow);
            let Some(record) = read::<Schedules>(reader, &key)? else {
                continue;
            };
            if let Some((live, definition, schedule)) = live(reader, &record)? {
                schedules.push(DueSchedule {
                    namespace: key.0,
                    workflow: key.1,
                    definition: live.definition,
                    created_at_ms: definition.created_at_ms,
                    schedule,
                    next: live.next,
                });
            }
        }
        Ok(DueSchedules {
            schedules,
            next_due_ms,
        })
    }
}

/// The live schedule of a record, with its revision.
fn live(
    reader: &dyn Reader,
    record: &ScheduleRecord,
) -> Result<Option<(LiveSchedule, DefinitionRecord, Schedule)>, StoreError> {
    let Some(live) = record.live else {
        return Ok(None);
    };
    let Some(definition) = read::<Definitions>(reader, &live.definition)? else {
        return Ok(None);
    };
    let schedule = definition.definition.schedule.clone();
    Ok(schedule.map(|schedule| (live, definition, schedule)))
}
