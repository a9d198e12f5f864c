//! Rows of dead letters.

use super::{Row, row};
use crate::samples;
use flotilla_engine::ids::{ActionRunNumber, StepName};
use flotilla_engine::rows::{
    ActionRunStatus, DeadLetterInputs, DeadLetterPlaces, DeadLetterQueueRecord, DeadLetterQueues,
    DeadLetterRecord, DeadLetters, TaskError,
};

pub(super) fn rows() -> Vec<Row> {
    let queue = || (samples::namespace(), samples::action());
    let dead_letter = || (queue().0, queue().1, 3);
    let step = StepName::new("start").expect("a name");
    let record = DeadLetterRecord {
        action_run: ActionRunNumber(9),
        status: ActionRunStatus::TimedOut,
        error: Some(TaskError {
            code: "timeout".to_owned(),
            message: "no report".to_owned(),
        }),
        attempts: 4,
        priority: 10,
        labels: samples::labels(),
        step: Some((samples::run_id(), Some(step))),
        bytes: 1_040,
        created_at_ms: 1_000,
        died_at_ms: 9_000,
    };
    let counts = DeadLetterQueueRecord {
        dead_letter_count: 1,
        letters_bytes: 1_040,
        dropped_count: 2,
        first_place: 3,
        next_place: 4,
    };
    vec![
        row::<DeadLetters>(dead_letter(), record),
        row::<DeadLetterInputs>(dead_letter(), samples::json()),
        row::<DeadLetterPlaces>((queue().0, queue().1, ActionRunNumber(9)), 3),
        row::<DeadLetterQueues>(queue(), counts),
    ]
}
