//! Rows of triggers.

use super::{Row, row};
use crate::samples;
use flotilla_engine::definition::TriggerIndex;
use flotilla_engine::ids::GroupNumber;
use flotilla_engine::rows::{
    DefinitionNumber, LiveTrigger, TriggerCounts, TriggerRecord, Triggers, TriggersByStream,
    TriggersDue,
};

pub(super) fn rows() -> Vec<Row> {
    let record = TriggerRecord {
        live: LiveTrigger {
            definition: DefinitionNumber(4),
            group: Some(GroupNumber(2)),
            first_found: vec![Some(samples::record_id()), None],
            due_ms: Some(60_000),
            waits_until_ms: Some(61_000),
            is_over_quota: true,
        },
        counts: TriggerCounts {
            since_ms: 50_000,
            run_count: 5,
            record_count: 9,
            skipped_count: 3,
            refused_count: 1,
            last_fired_ms: Some(60_005),
        },
    };
    let index = TriggerIndex(1);
    let source = (
        samples::namespace(),
        samples::stream(),
        samples::namespace(),
        samples::workflow(),
        index,
    );
    vec![
        row::<Triggers>((samples::namespace(), samples::workflow(), index), record),
        row::<TriggersByStream>(source, ()),
        row::<TriggersDue>(
            (60_000, samples::namespace(), samples::workflow(), index),
            (),
        ),
    ]
}
