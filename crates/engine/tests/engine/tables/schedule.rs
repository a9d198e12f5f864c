//! Rows of schedules.

use super::{Row, row};
use crate::samples;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    DefinitionNumber, FiringRecord, LiveSchedule, NextFiring, ScheduleRecord, Schedules,
    SchedulesDue,
};

pub(super) fn rows() -> Vec<Row> {
    let firing = FiringRecord {
        firing_ms: 60_000,
        fired_at_ms: 60_005,
        run: RunNumber(7),
    };
    let record = ScheduleRecord {
        live: Some(LiveSchedule {
            definition: DefinitionNumber(4),
            is_paused: true,
            next: NextFiring::At { due_ms: 120_000 },
        }),
        open_count: 2,
        quarantined_count: 1,
        fired_count: 5,
        skipped_count: 2,
        last_fired: Some(firing),
        last_skipped_ms: Some(30_000),
    };
    vec![
        row::<Schedules>((samples::namespace(), samples::workflow()), record),
        row::<SchedulesDue>((120_000, samples::namespace(), samples::workflow()), ()),
    ]
}
