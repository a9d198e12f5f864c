//! The queues of ready tasks: joining, leaving, and reading them from the front (A2, A3).

use super::loaded::Loaded;
use crate::codec;
use crate::ids::{ActionName, ActionRunNumber, Namespace};
use crate::limits::{LABEL_QUEUES_VISITED_MAX, READY_PIECE_TASKS_MAX};
use crate::store::{KeyRange, StoreError};
use crate::tables::{
    Key, LabelSet, Ready, ReadyActionRecord, ReadyActions, ReadyLabels, ReadyQueue, Table,
    encode_prefix,
};
use crate::turn::Turn;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

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
    match turn.get::<Ready>(&key_of(task))? {
        Some(_) => leave(turn, task),
        None => Ok(()),
    }
}

/// The queues of an action in which tasks wait.
pub(super) struct Waiting {
    pub(super) queues: Vec<LabelSet>,
    /// False when there are more than one look takes in.
    pub(super) is_complete: bool,
}

/// The queues of `action` in which tasks wait; of many, some that follow a random one.
pub(super) fn waiting(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    action: &ActionName,
) -> Result<Waiting, StoreError> {
    let mut waiting = Waiting {
        queues: Vec::new(),
        is_complete: true,
    };
    let key = (namespace.clone(), action.clone());
    let Some(record) = turn.get::<ReadyActions>(&key)? else {
        return Ok(waiting);
    };
    if record.tasks_count > 0 {
        waiting.queues.push(LabelSet::default());
    }
    if record.label_queues_count > 0 {
        let queues_max = LABEL_QUEUES_VISITED_MAX as u64;
        waiting.is_complete = record.label_queues_count <= queues_max;
        // Where one look cannot take in all of them each look begins elsewhere: so none is passed
        // over for ever.
        let start = if waiting.is_complete {
            0
        } else {
            turn.random()
        };
        waiting
            .queues
            .extend(label_queues(turn, namespace, action, start)?);
    }
    Ok(waiting)
}

/// The labels of an action's queues, from the fingerprint `start` on and around.
fn label_queues(
    turn: &Turn<'_, '_>,
    namespace: &Namespace,
    action: &ActionName,
    start: u64,
) -> Result<Vec<LabelSet>, StoreError> {
    let whole = (namespace.clone(), action.clone());
    let whole = KeyRange::prefix(&encode_prefix::<ReadyLabels>(&whole));
    let middle = (namespace.clone(), action.clone(), start);
    let middle = encode_prefix::<ReadyLabels>(&middle);
    let behind = KeyRange {
        from: middle.clone(),
        to: whole.to,
    };
    let before = KeyRange {
        from: whole.from,
        to: middle,
    };
    let mut queues = Vec::new();
    for range in [behind, before] {
        turn.visit_range::<ReadyLabels>(&range, |(_, _, _, labels), _| {
            if queues.len() == LABEL_QUEUES_VISITED_MAX {
                return ControlFlow::Break(());
            }
            queues.push(labels);
            ControlFlow::Continue(())
        })?;
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
    let (namespace, action, labels) = queue_of(task);
    let key = (namespace.clone(), action.clone());
    let mut record = owned::<ReadyActions>(turn, &key)?;
    let before = record.clone();
    if labels.0.is_empty() {
        change(&mut record.tasks_count);
    } else {
        let key = (namespace, action, fingerprint(&labels), labels);
        let mut queue = owned::<ReadyLabels>(turn, &key)?;
        let was_there = queue.tasks_count > 0;
        change(&mut queue.tasks_count);
        let is_there = queue.tasks_count > 0;
        put_or_delete::<ReadyLabels>(turn, &key, is_there.then_some(queue));
        match (was_there, is_there) {
            (false, true) => record.label_queues_count += 1,
            (true, false) => record.label_queues_count -= 1,
            (true, true) | (false, false) => {}
        }
    }
    if record != before {
        let is_empty = record == ReadyActionRecord::default();
        put_or_delete::<ReadyActions>(turn, &key, (!is_empty).then_some(record));
    }
    Ok(())
}

fn owned<T: Table<Record: Default>>(
    turn: &mut Turn<'_, '_>,
    key: &T::Key,
) -> Result<T::Record, StoreError> {
    let record = turn.get::<T>(key)?;
    Ok(record.map(Arc::unwrap_or_clone).unwrap_or_default())
}

fn put_or_delete<T: Table>(turn: &mut Turn<'_, '_>, key: &T::Key, record: Option<T::Record>) {
    match record {
        Some(record) => turn.put::<T>(key, record),
        None => turn.delete::<T>(key),
    }
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

fn fingerprint(labels: &LabelSet) -> u64 {
    let mut bytes = Vec::new();
    labels.encode(&mut bytes);
    codec::fingerprint(&bytes)
}
