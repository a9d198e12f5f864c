//! Requeueing dead letters (A6).

use super::selector::{DeadLetterSelector, PieceMax, Queue, remove, select};
use crate::action::{ActionInput, NewActionRun, Owner, create};
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::{REQUEUE_BYTES_MAX, REQUEUED_PER_COMMAND_MAX};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::DeadLettersRequeued;
use crate::store::StoreError;
use crate::tables::{ActionRecord, Actions, DeadLetterInputs, DeadLetterRecord, DeadLetters};
use crate::task;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Runs dead letters of an action again, each as a new stand-alone action run; the failed workflow run does not resume.
/// Works in bounded batches; the reply says whether some remain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequeueDeadLetters {
    /// The action.
    pub action: ActionName,
    /// The dead letters to requeue.
    pub dead_letters: DeadLetterSelector,
}

const PIECE_MAX: PieceMax = PieceMax {
    count: REQUEUED_PER_COMMAND_MAX,
    bytes: REQUEUE_BYTES_MAX,
};

impl RequeueDeadLetters {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<DeadLettersRequeued> {
        quota::check(turn, namespace, &NEEDS)?;
        let queue = (namespace.clone(), self.action.clone());
        let action = turn
            .get::<Actions>(&queue)?
            .ok_or_else(|| Rejection::ActionNotFound(self.action.clone()))?;
        if !action.is_enabled {
            return Err(Rejection::ActionDisabled(self.action.clone()).into());
        }
        let (places, mut has_more) = select(turn, &queue, self.dead_letters, PIECE_MAX)?;
        let mut action_runs = Vec::with_capacity(places.len());
        for place in &places {
            let over = quota::refusal(turn, namespace, &NEEDS)?;
            if over.is_some() || !self.may_open(turn, &queue, *place)? {
                has_more = true;
                break;
            }
            action_runs.push(run_again(turn, &queue, *place, &action)?);
        }
        remove(turn, &queue, &places[..action_runs.len()])?;
        Ok(DeadLettersRequeued {
            action_runs,
            has_more,
        })
    }

    /// Whether the dead letter can be run again now. If not, a command for one dead letter is rejected; a command for
    /// many requeues those before it and leaves the rest until open action runs that require labels have ended.
    fn may_open(
        &self,
        turn: &mut Turn<'_, '_>,
        queue: &Queue,
        place: u64,
    ) -> Result<bool, StoreError> {
        match self.dead_letters {
            DeadLetterSelector::One(_) => Ok(true),
            DeadLetterSelector::UpTo(_) => {
                let dead_letter = read(turn, queue, place)?;
                task::has_label_queue(turn, queue, &dead_letter.labels)
            }
        }
    }
}

/// What one more action run needs of the quotas.
const NEEDS: [quota::Need; 2] = [
    (QuotaDimension::InvokesPerMinute, 1),
    (QuotaDimension::OpenActionRuns, 1),
];

/// The dead letter at a selected place.
fn read(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    place: u64,
) -> Result<Arc<DeadLetterRecord>, StoreError> {
    let dead_letter = turn.get::<DeadLetters>(&(queue.0.clone(), queue.1.clone(), place))?;
    Ok(dead_letter.expect("the letter was chosen among those that are there"))
}

/// Creates an action run from a dead letter, with the action's current settings.
fn run_again(
    turn: &mut Turn<'_, '_>,
    queue: &Queue,
    place: u64,
    action: &ActionRecord,
) -> TurnResult<ActionRunNumber> {
    let key = (queue.0.clone(), queue.1.clone(), place);
    let dead_letter = read(turn, queue, place)?;
    let input = turn.get::<DeadLetterInputs>(&key)?;
    let input = input.expect("a letter has its input");
    let new_action_run = NewActionRun {
        namespace: queue.0.clone(),
        name: queue.1.clone(),
        owner: Owner::Caller,
        input: ActionInput::Own((*input).clone()),
        priority: dead_letter.priority,
        labels: dead_letter.labels.clone(),
        idempotency_key: None,
    };
    let task = create(turn, action, new_action_run)?;
    turn.note_use(&queue.0, QuotaDimension::OpenActionRuns, 1);
    quota::spend(turn, &queue.0, NEEDS[0])?;
    let action_run = task.number;
    task::make_ready(turn, None, task)?;
    Ok(action_run)
}
