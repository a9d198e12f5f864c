//! Schedules and their firings (W40).

use super::{DefinitionNumber, tables};
use crate::ids::{Namespace, RunNumber, WorkflowName};
use serde::{Deserialize, Serialize};

tables! {
    /// By workflow, once one of its revisions was the latest with a schedule. Lives as long as the
    /// workflow, so that counters and open runs outlast a revision.
    37 Schedules((Namespace, WorkflowName)) -> ScheduleRecord, HOT;
    /// Schedules that fire, by the time at which the driver must look. Live until fired, replanned or stopped.
    38 SchedulesDue((u64, Namespace, WorkflowName)) -> ();
}

/// A workflow's schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// The schedule of the latest revision; `None` if it has no schedule (W5).
    pub live: Option<LiveSchedule>,
    /// Open runs that firings started, of whatever revision.
    pub open_count: u32,
    /// Those of the open runs that are quarantined; a firing is skipped at `max_concurrent` others.
    ///
    /// Invariant: at most `open_count`.
    pub quarantined_count: u32,
    /// Firings that started a run.
    pub fired_count: u64,
    /// Firings that started no run: they found `max_concurrent` open ones, a concurrency limit, another run or a quota.
    pub skipped_count: u64,
    /// The last firing that started a run.
    pub last_fired: Option<FiringRecord>,
    /// The last firing that was skipped, in milliseconds.
    pub last_skipped_ms: Option<u64>,
}

impl ScheduleRecord {
    /// Open runs that count towards `max_concurrent`.
    pub(crate) fn running_count(&self) -> u32 {
        let running_count = self.open_count.checked_sub(self.quarantined_count);
        running_count.expect("a quarantined run of a schedule is open")
    }
}

/// The schedule of the latest revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSchedule {
    /// The revision.
    pub definition: DefinitionNumber,
    /// Whether it waits for the first `enable` (W42).
    pub is_paused: bool,
    /// The next firing.
    pub next: NextFiring,
}

/// The next firing of a schedule. The engine never evaluates cron; the log provides the result (design rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextFiring {
    /// Not known yet: firings from this time on count.
    Unplanned {
        /// The earliest time that counts.
        from_ms: u64,
    },
    /// The schedule fires at a known time.
    At {
        /// When the firing is due, in milliseconds.
        due_ms: u64,
    },
    /// The schedule has no further firing.
    Never,
}

impl NextFiring {
    /// When the driver must look, in milliseconds.
    #[must_use]
    pub fn due_ms(self) -> Option<u64> {
        match self {
            Self::Unplanned { from_ms } => Some(from_ms),
            Self::At { due_ms } => Some(due_ms),
            Self::Never => None,
        }
    }

    /// The state that follows from a computed firing time, in milliseconds.
    #[must_use]
    pub fn at(due_ms: Option<u64>) -> Self {
        due_ms.map_or(Self::Never, |due_ms| Self::At { due_ms })
    }
}

/// A firing that started a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringRecord {
    /// The time that the schedule names, in milliseconds.
    pub firing_ms: u64,
    /// The time of the entry that fired it, in milliseconds.
    pub fired_at_ms: u64,
    /// What it started.
    pub run: RunNumber,
}
