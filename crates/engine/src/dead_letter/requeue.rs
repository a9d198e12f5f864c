//! Running dead letters again (A6).

use super::choice::{LetterChoice, Queue, choose, remove};
use crate::action::{ActionInput, Opening, Owner, open};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::REQUEUE_LETTERS_MAX;
use crate::rejection::Rejection;
use crate::reply::DeadLettersRequeued;
use crate::tables::{ActionRecord, Actions, DeadLetterInputs, DeadLetters};
use crate::task;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Runs dead letters of an action again, each as a new action run outside any workflow: it resumes
/// none. In bounded pieces: the reply says whether there are more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequeueDeadLetters {
    /// The action.
    pub action: ActionName,
    /// Which.
    pub letters: LetterChoice,
}

impl RequeueDeadLetters {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<DeadLettersRequeued> {
        let queue = (namespace.clone(), self.action.clone());
        let action = turn
            .get::<Actions>(&queue)?
            .ok_or_else(|| Rejection::ActionNotFound(self.action.clone()))?;
        if !action.is_enabled {
            return Err(Rejection::ActionDisabled(self.action.clone()).into());
        }
        let (numbers, has_more) = choose(turn, &queue, self.letters, REQUEUE_LETTERS_MAX)?;
        let mut action_runs = Vec::with_capacity(numbers.len());
        for number in &numbers {
            action_runs.push(run_again(turn, &queue, *number, &action)?);
        }
        remove(turn, &queue, &numbers)?;
        Ok(DeadLettersRequeued {
            action_runs,
            has_more,
        })
    }
}

/// Makes an action run of a letter, with the settings that the action has now.
fn run_again(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    number: ActionRunNumber,
    action: &ActionRecord,
) -> Outcome<ActionRunNumber> {
    let key = (queue.0.clone(), queue.1.clone(), number);
    let letter = turn.get::<DeadLetters>(&key)?;
    let letter = letter.expect("the letter was chosen among those that are there");
    let input = turn.get::<DeadLetterInputs>(&key)?;
    let input = input.expect("a letter has its input");
    let opening = Opening {
        namespace: queue.0.clone(),
        name: queue.1.clone(),
        owner: Owner::Caller,
        input: ActionInput::Own((*input).clone()),
        priority: letter.priority,
        labels: letter.labels.clone(),
        idempotency_key: None,
    };
    let action_run = open(turn, action, opening)?;
    task::make_ready(turn, None, action_run)?;
    Ok(action_run)
}
