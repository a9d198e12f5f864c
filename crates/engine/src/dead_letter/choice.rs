//! Which dead letters a command is about.

use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{DeadLetterInputs, DeadLetterQueues, DeadLetters};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// One letter, or all that were there when the caller looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LetterChoice {
    /// That of this action run.
    One(ActionRunNumber),
    /// Those up to and including that of this action run. Letters that come meanwhile are newer, so
    /// that requeueing what fails again comes to an end.
    UpTo(ActionRunNumber),
}

/// Whose letters.
pub(super) type Queue = (Namespace, ActionName);

/// The chosen letters, the oldest first and at most `count_max`, and whether there are more.
///
/// # Errors
/// [`Rejection::DeadLetterNotFound`] when the one that is named is not there.
pub(super) fn choose(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    choice: LetterChoice,
    count_max: usize,
) -> Outcome<(Vec<ActionRunNumber>, bool)> {
    let last = match choice {
        LetterChoice::One(number) => {
            let key = (queue.0.clone(), queue.1.clone(), number);
            let letter = turn.get::<DeadLetters>(&key)?;
            letter.ok_or(Rejection::DeadLetterNotFound(number))?;
            return Ok((vec![number], false));
        }
        LetterChoice::UpTo(last) => last,
    };
    let mut numbers = Vec::new();
    let mut has_more = false;
    turn.visit::<DeadLetters>(queue, |(_, _, number), _| {
        if number > last {
            return ControlFlow::Break(());
        }
        has_more = numbers.len() == count_max;
        if has_more {
            return ControlFlow::Break(());
        }
        numbers.push(number);
        ControlFlow::Continue(())
    })?;
    Ok((numbers, has_more))
}

/// Takes letters out of their queue.
pub(super) fn remove(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    numbers: &[ActionRunNumber],
) -> Result<(), StoreError> {
    for number in numbers {
        let key = (queue.0.clone(), queue.1.clone(), *number);
        turn.delete::<DeadLetters>(&key);
        turn.delete::<DeadLetterInputs>(&key);
    }
    if let Some(counts) = turn.get::<DeadLetterQueues>(queue)? {
        let mut counts = *counts;
        let left = counts.letters_count.checked_sub(numbers.len() as u64);
        counts.letters_count = left.expect("every letter is counted");
        turn.put::<DeadLetterQueues>(queue, counts);
    }
    Ok(())
}
