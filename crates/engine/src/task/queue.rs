//! The queues of ready tasks: adding, removing and reading in order (A2, A3).

use super::label_queue;
use super::loaded::LoadedTask;
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::READY_BATCH_TASKS_MAX;
use crate::store::StoreError;
use crate::tables::{LabelSet, Ready, ReadyActions, ReadyQueue, Table};
use crate::turn::Turn;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Adds a task to its queue.
pub(super) fn join(turn: &mut Turn<'_, '_>, task: &LoadedTask) -> Result<(), StoreError> {
    turn.put::<Ready>(&key_of(task), ());
    change_counts(turn, task, |count| *count += 1)
}

/// Removes a waiting task from its queue.
pub(super) fn leave(turn: &mut Turn<'_, '_>, task: &LoadedTask) -> Result<(), StoreError> {
    turn.delete::<Ready>(&key_of(task));
    change_counts(turn, task, |count| *count -= 1)
}

/// Removes a task from its queue, if it waits there; a delayed task does not.
pub(super) fn withdraw(turn: &mut Turn<'_, '_>, task: &LoadedTask) -> Result<(), StoreError> {
    if is_waiting(turn, task)? {
        leave(turn, task)?;
    }
    Ok(())
}

/// Whether a task waits in its queue.
pub(super) fn is_waiting(turn: &mut Turn<'_, '_>, task: &LoadedTask) -> Result<bool, StoreError> {
    Ok(turn.get::<Ready>(&key_of(task))?.is_some())
}

/// The queues of `action` in which tasks wait: at most one without labels, and those with labels.
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

/// A task in a queue, ordered by priority and age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    inverted_priority: u8,
    pub(super) number: ActionRunNumber,
}

/// Reads a queue from its front, in batches.
pub(super) struct Reader {
    queue: ReadyQueue,
    batch: VecDeque<QueuePosition>,
    /// Where the next batch begins; `None` at the end.
    rest: Option<Rest>,
}

/// The part of a queue that has not been read yet.
enum Rest {
    All,
    Behind(QueuePosition),
}

impl Reader {
    pub(super) fn new(queue: ReadyQueue) -> Self {
        Self {
            queue,
            batch: VecDeque::new(),
            rest: Some(Rest::All),
        }
    }

    /// The next task.
    pub(super) fn next(
        &mut self,
        turn: &mut Turn<'_, '_>,
    ) -> Result<Option<QueuePosition>, StoreError> {
        if self.batch.is_empty()
            && let Some(rest) = self.rest.take()
        {
            self.read(turn, &rest)?;
        }
        Ok(self.batch.pop_front())
    }

    fn read(&mut self, turn: &mut Turn<'_, '_>, rest: &Rest) -> Result<(), StoreError> {
        let after = match rest {
            Rest::All => None,
            Rest::Behind(position) => Some(key_at(&self.queue, *position)),
        };
        let batch = &mut self.batch;
        turn.visit_ready(&self.queue, after.as_ref(), |key| {
            let (_, _, _, inverted_priority, number) = key;
            batch.push_back(QueuePosition {
                inverted_priority,
                number,
            });
            if batch.len() < READY_BATCH_TASKS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if self.batch.len() == READY_BATCH_TASKS_MAX {
            self.rest = self.batch.back().copied().map(Rest::Behind);
        }
        Ok(())
    }
}

fn change_counts(
    turn: &mut Turn<'_, '_>,
    task: &LoadedTask,
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

fn queue_of(task: &LoadedTask) -> ReadyQueue {
    let record = &task.record;
    (
        record.namespace.clone(),
        record.action.clone(),
        LabelSet(record.labels.clone()),
    )
}

fn key_of(task: &LoadedTask) -> <Ready as Table>::Key {
    let position = QueuePosition {
        inverted_priority: u8::MAX - task.record.priority,
        number: task.number,
    };
    key_at(&queue_of(task), position)
}

fn key_at(
    (namespace, action, labels): &ReadyQueue,
    position: QueuePosition,
) -> <Ready as Table>::Key {
    (
        namespace.clone(),
        action.clone(),
        labels.clone(),
        position.inverted_priority,
        position.number,
    )
}
