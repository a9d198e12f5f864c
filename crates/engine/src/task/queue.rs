//! The queues of ready tasks: joining, leaving, and reading them from the front (A2, A3).

use super::label_queue;
use super::loaded::Loaded;
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::READY_PIECE_TASKS_MAX;
use crate::store::StoreError;
use crate::tables::{LabelSet, Ready, ReadyActions, ReadyQueue, Table};
use crate::turn::Turn;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Puts a task into its queue.
pub(super) fn join(turn: &mut Turn<'_, '_>, task: &Loaded) -> Result<(), StoreError> {
    turn.put::<Ready>(&key_of(task), ());
    change_counts(turn, task, |count| *count += 1)
}

/// Takes a task that waits in its queue out of it.
pub(super) fn leave(turn: &mut Turn<'_, '_>, task: &Loaded) -> Result<(), StoreError> {
    turn.delete::<Ready>(&key_of(task));
    change_counts(turn, task, |count| *count -= 1)
}

/// Takes a task out of its queue, if it waits there: one that is put off does not.
pub(super) fn withdraw(turn: &mut Turn<'_, '_>, task: &Loaded) -> Result<(), StoreError> {
    if is_waiting(turn, task)? {
        leave(turn, task)?;
    }
    Ok(())
}

/// Whether a task waits in its queue.
pub(super) fn is_waiting(turn: &mut Turn<'_, '_>, task: &Loaded) -> Result<bool, StoreError> {
    Ok(turn.get::<Ready>(&key_of(task))?.is_some())
}

/// The queues of `action` in which tasks wait: one at most without labels, and those with labels.
pub(super) fn waiting(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<Vec<LabelSet>, StoreError> {
    let key = (namespace.clone(), action.clone());
    let Some(record) = turn.get::<ReadyActions>(&key)? else {
        return Ok(Vec::new());
    };
    let mut queues = label_queue::waiting(turn, &key, &record)?;
    if record.tasks_count > 0 {
        queues.push(LabelSet::default());
    }
    Ok(queues)
}

/// A task in a queue, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    inverted_priority: u8,
    pub(super) number: ActionRunNumber,
}

/// Reads a queue from its front, a piece at a time.
pub(super) struct Reader {
    queue: ReadyQueue,
    piece: VecDeque<Place>,
    /// Where the next piece begins; `None` at the end.
    rest: Option<Rest>,
}

/// What of a queue was not read yet.
enum Rest {
    All,
    Behind(Place),
}

impl Reader {
    pub(super) fn new(queue: ReadyQueue) -> Self {
        Self {
            queue,
            piece: VecDeque::new(),
            rest: Some(Rest::All),
        }
    }

    /// The next task.
    pub(super) fn next(&mut self, turn: &mut Turn<'_, '_>) -> Result<Option<Place>, StoreError> {
        if self.piece.is_empty()
            && let Some(rest) = self.rest.take()
        {
            self.read(turn, &rest)?;
        }
        Ok(self.piece.pop_front())
    }

    fn read(&mut self, turn: &mut Turn<'_, '_>, rest: &Rest) -> Result<(), StoreError> {
        let after = match rest {
            Rest::All => None,
            Rest::Behind(place) => Some(key_at(&self.queue, *place)),
        };
        let piece = &mut self.piece;
        turn.visit_ready(&self.queue, after.as_ref(), |key| {
            let (_, _, _, inverted_priority, number) = key;
            piece.push_back(Place {
                inverted_priority,
                number,
            });
            if piece.len() < READY_PIECE_TASKS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if self.piece.len() == READY_PIECE_TASKS_MAX {
            self.rest = self.piece.back().copied().map(Rest::Behind);
        }
        Ok(())
    }
}

fn change_counts(
    turn: &mut Turn<'_, '_>,
    task: &Loaded,
    change: impl FnOnce(&mut u64),
) -> Result<(), StoreError> {
    let record = &task.record;
    if !record.labels.is_empty() {
        return label_queue::change_waiting(turn, record, change);
    }
    let key = (record.namespace.clone(), record.action.clone());
    let mut counts = label_queue::counts(turn, &key)?;
    change(&mut counts.tasks_count);
    label_queue::put_counts(turn, &key, counts);
    Ok(())
}

fn queue_of(task: &Loaded) -> ReadyQueue {
    let record = &task.record;
    (
        record.namespace.clone(),
        record.action.clone(),
        LabelSet(record.labels.clone()),
    )
}

fn key_of(task: &Loaded) -> <Ready as Table>::Key {
    let place = Place {
        inverted_priority: u8::MAX - task.record.priority,
        number: task.number,
    };
    key_at(&queue_of(task), place)
}

fn key_at((namespace, action, labels): &ReadyQueue, place: Place) -> <Ready as Table>::Key {
    (
        namespace.clone(),
        action.clone(),
        labels.clone(),
        place.inverted_priority,
        place.number,
    )
}
