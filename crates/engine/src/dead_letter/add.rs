//! Adding a dead letter after an action run failed permanently (A4, A5).

use super::selector::{DeadLetterSelector, PieceMax, Queue, remove, select};
use crate::ids::{ActionRunNumber, RunId, StepName};
use crate::limits::{DEAD_LETTER_BYTES_OVERHEAD, DEAD_LETTERS_BYTES_MAX, DEAD_LETTERS_MAX};
use crate::tables::{
    ActionRunRecord, DeadLetterInputs, DeadLetterPlaces, DeadLetterQueues, DeadLetterRecord,
    DeadLetters,
};
use crate::turn::{Turn, TurnResult};

/// Adds the action run to its action's dead-letter queue; a full queue drops its oldest dead letters.
pub(crate) fn add(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
    step: Option<(RunId, Option<StepName>)>,
) -> TurnResult<()> {
    let queue = (record.namespace.clone(), record.action.clone());
    let input = turn.payload(record.input)?;
    let bytes = input.as_str().len() as u64 + DEAD_LETTER_BYTES_OVERHEAD;
    drop_oldest(turn, &queue, bytes)?;
    let dead_letter = DeadLetterRecord {
        action_run: number,
        status: record.status,
        error: record.error.clone(),
        attempts: record.attempt,
        priority: record.priority,
        labels: record.labels.clone(),
        step,
        bytes,
        created_at_ms: record.created_at_ms,
        died_at_ms: turn.now_ms(),
    };
    let mut counts = turn
        .get::<DeadLetterQueues>(&queue)?
        .map_or_else(Default::default, |counts| *counts);
    let place = counts.next_place;
    counts.dead_letter_count += 1;
    counts.letters_bytes += bytes;
    counts.next_place += 1;
    turn.put::<DeadLetterQueues>(&queue, counts);
    let key = (queue.0, queue.1, place);
    turn.put::<DeadLetters>(&key, dead_letter);
    turn.put::<DeadLetterInputs>(&key, input);
    turn.put::<DeadLetterPlaces>(&(key.0, key.1, number), place);
    Ok(())
}

/// Drops the oldest dead letters of a queue until one of `bytes` fits. Each counts at least a constant, so the number
/// of drops is bounded.
fn drop_oldest(turn: &mut Turn<'_, '_>, queue: &Queue, bytes: u64) -> TurnResult<()> {
    while let Some(counts) = turn.get::<DeadLetterQueues>(queue)?
        && (counts.dead_letter_count >= DEAD_LETTERS_MAX
            || counts.letters_bytes + bytes > DEAD_LETTERS_BYTES_MAX)
    {
        let one = PieceMax {
            count: 1,
            bytes: u64::MAX,
        };
        let (oldest, _) = select(turn, queue, DeadLetterSelector::UpTo(u64::MAX), one)?;
        assert!(
            !oldest.is_empty(),
            "an empty queue has room for a dead letter"
        );
        remove(turn, queue, &oldest)?;
        turn.edit::<DeadLetterQueues, _>(queue, |counts| counts.dropped_count += 1)?;
    }
    Ok(())
}
