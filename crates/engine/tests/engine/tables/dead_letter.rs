//! Rows of dead letters.

use super::{Row, row};
use crate::samples;
use flotilla_engine::ids::{ActionRunNumber, StepName};
use flotilla_engine::tables::{
    ActionRunStatus, DeadLetterInputs, DeadLetterQueueRecord, DeadLetterQueues, DeadLetterRecord,
    DeadLetters, TaskError,
};

pub(super) fn rows() -> Vec<Row> {
    let queue = || (samples::namespace(), samples::action());
    let letter = || (queue().0, queue().1, ActionRunNumber(9));
    let step = StepName::new("start").expect("a name");
    let record = DeadLetterRecord {
        status: ActionRunStatus::TimedOut,
        error: Some(TaskError {
            code: "timeout".to_owned(),
            message: "no report".to_owned(),
        }),
        attempts: 4,
        priority: 10,
        labels: samples::labels(),
        step: Some((samples::run_id(), Some(step))),
        created_at_ms: 1_000,
        died_at_ms: 9_000,
    };
    let counts = DeadLetterQueueRecord {
        letters_count: 1,
        dropped_count: 2,
    };
    vec![
        row::<DeadLetters>(letter(), record),
        row::<DeadLetterInputs>(letter(), samples::json()),
        row::<DeadLetterQueues>(queue(), counts),
    ]
}
