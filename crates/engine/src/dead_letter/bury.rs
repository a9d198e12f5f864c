//! An action run failed for good (A4, A5).

use super::choice::{Queue, remove};
use crate::ids::{ActionRunNumber, RunId, StepName};
use crate::limits::DEAD_LETTERS_MAX;
use crate::run;
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, DeadLetterInputs, DeadLetterQueues, DeadLetterRecord,
    DeadLetters, Payloads,
};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// Puts the action run among its action's dead letters; a full queue drops its oldest one.
pub(crate) fn bury(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &ActionRunRecord,
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
        step: step_of(turn, record)?,
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

/// The workflow run and step that the action run belongs to, by the names that people know.
fn step_of(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
) -> Outcome<Option<(RunId, Option<StepName>)>> {
    let ActionRunOwner::Step { run, activation } = record.owner else {
        return Ok(None);
    };
    let is_set_aside = turn.is_quarantined(run);
    let run = run::load(turn, run)?.record;
    if is_set_aside {
        // Its steps are what a turn of it has failed on (design rule 10).
        return Ok(Some((run.id.clone(), None)));
    }
    let definition = pinned(turn, run.definition)?;
    let step = run
        .activation(activation)
        .map(|active| definition.definition.step(active.step).name.clone());
    Ok(Some((run.id.clone(), step)))
}
