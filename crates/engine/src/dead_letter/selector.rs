//! Selecting the dead letters that a command applies to.

use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{DeadLetterInputs, DeadLetterPlaces, DeadLetterQueues, DeadLetters};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// One dead letter, or all that existed when the caller read the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeadLetterSelector {
    /// The dead letter of this action run.
    One(ActionRunNumber),
    /// All up to and including this place. Dead letters added meanwhile have higher places, so requeueing action runs
    /// that fail again terminates.
    UpTo(u64),
}

/// The queue of an action.
pub(super) type Queue = (Namespace, ActionName);

/// How many dead letters one command processes.
pub(super) struct PieceMax {
    pub(super) count: usize,
    /// What they count together, unless the first alone counts more.
    pub(super) bytes: u64,
}

/// The places of the selected dead letters, oldest first and at most `max`, and whether more remain.
///
/// # Errors
/// [`Rejection::DeadLetterNotFound`] if the named dead letter does not exist.
pub(super) fn select(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    choice: DeadLetterSelector,
    max: PieceMax,
) -> TurnResult<(Vec<u64>, bool)> {
    let last = match choice {
        DeadLetterSelector::One(number) => {
            let key = (queue.0.clone(), queue.1.clone(), number);
            let place = turn.get::<DeadLetterPlaces>(&key)?;
            let place = place.ok_or(Rejection::DeadLetterNotFound(number))?;
            return Ok((vec![*place], false));
        }
        DeadLetterSelector::UpTo(last) => last,
    };
    let mut places = Vec::new();
    let mut has_more = false;
    let mut bytes = 0;
    let first = first_place(turn, queue)?;
    turn.visit_from::<DeadLetters>(queue, &first, |(_, _, place), dead_letter| {
        if place > last {
            return ControlFlow::Break(());
        }
        bytes += dead_letter.bytes;
        has_more = places.len() == max.count || (bytes > max.bytes && !places.is_empty());
        if has_more {
            return ControlFlow::Break(());
        }
        places.push(place);
        ControlFlow::Continue(())
    })?;
    Ok((places, has_more))
}

/// Where a search for the oldest dead letter begins: after the places of deleted ones.
fn first_place(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
) -> Result<(Namespace, ActionName, u64), StoreError> {
    let counts = turn.get::<DeadLetterQueues>(queue)?;
    let first = counts.map_or(0, |counts| counts.first_place);
    Ok((queue.0.clone(), queue.1.clone(), first))
}

/// Removes dead letters from their queue.
pub(super) fn remove(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    places: &[u64],
) -> Result<(), StoreError> {
    let mut bytes = 0;
    for place in places {
        let key = (queue.0.clone(), queue.1.clone(), *place);
        let dead_letter = turn.get::<DeadLetters>(&key)?;
        let dead_letter =
            dead_letter.expect("the dead letter was chosen among those that are there");
        bytes += dead_letter.bytes;
        turn.delete::<DeadLetters>(&key);
        turn.delete::<DeadLetterInputs>(&key);
        turn.delete::<DeadLetterPlaces>(&(key.0, key.1, dead_letter.action_run));
    }
    let first = first_place(turn, queue)?;
    let mut oldest = None;
    turn.visit_from::<DeadLetters>(queue, &first, |(_, _, place), _| {
        oldest = Some(place);
        ControlFlow::Break(())
    })?;
    turn.edit::<DeadLetterQueues, _>(queue, |counts| {
        let left = counts.dead_letter_count.checked_sub(places.len() as u64);
        counts.dead_letter_count = left.expect("every dead letter is counted");
        let left = counts.letters_bytes.checked_sub(bytes);
        counts.letters_bytes = left.expect("what every dead letter counts is counted");
        counts.first_place = oldest.unwrap_or(counts.next_place);
    })?;
    Ok(())
}
