//! An action run failed for good (A4, A5).

use super::choice::{Queue, remove};
use crate::ids::{ActionRunNumber, RunId, StepName};
use crate::limits::DEAD_LETTERS_MAX;
use crate::store::StoreError;
use crate::tables::{
    ActionRunRecord, DeadLetterInputs, DeadLetterQueues, DeadLetterRecord, DeadLetters, Payloads,
};
use crate::turn::{Outcome, Turn};

/// Puts the action run, of this step if of any, among its action's dead letters; a full queue drops its oldest one.
pub(crate) fn bury(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
    step: Option<(RunId, Option<StepName>)>,
) -> Outcome<()> {
    let queue = (record.namespace.clone(), record.action.clone());
    make_room(turn, &queue)?;
    let input = turn.get::<Payloads>(&record.input)?;
    let input = input.expect("the input of an action run is kept as long as the action run");
    let letter = DeadLetterRecord {
        status: record.status,
        error: record.error.clone(),
        attempts: record.attempt,
        priority: record.priority,
        labels: record.labels.clone(),
        step,
        created_at_ms: record.created_at_ms,
        died_at_ms: turn.now_ms(),
    };
    let mut counts = turn
        .get::<DeadLetterQueues>(&queue)?
        .map_or_else(Default::default, |counts| *counts);
    counts.letters_count += 1;
    turn.put::<DeadLetterQueues>(&queue, counts);
    let key = (queue.0, queue.1, number);
    turn.put::<DeadLetters>(&key, letter);
    turn.put::<DeadLetterInputs>(&key, (*input).clone());
    Ok(())
}

fn make_room(turn: &mut Turn<'_, '_>, queue: &Queue) -> Result<(), StoreError> {
    let counts = turn.get::<DeadLetterQueues>(queue)?;
    if counts.is_none_or(|counts| counts.letters_count < DEAD_LETTERS_MAX) {
        return Ok(());
    }
    let oldest = turn.list::<DeadLetters>(queue, 1)?;
    let oldest: Vec<ActionRunNumber> = oldest.into_iter().map(|(key, _)| key.2).collect();
    remove(turn, queue, &oldest)?;
    if let Some(counts) = turn.get::<DeadLetterQueues>(queue)? {
        let mut counts = *counts;
        counts.dropped_count += 1;
        turn.put::<DeadLetterQueues>(queue, counts);
    }
    Ok(())
}
