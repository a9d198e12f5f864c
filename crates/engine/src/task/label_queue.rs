//! The queues of an action's tasks that ask for labels (A3).
//!
//! There is a queue for each set of labels that open action runs ask for, and there are few: a look
//! takes in all of them, so that no task is passed over for a newer one. Each has a place, and the
//! action's record says in which places tasks wait, so that no look scans.

use crate::ids::{ActionName, Namespace};
use crate::limits::LABEL_QUEUES_MAX;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{
    ActionRunRecord, LabelQueueRecord, LabelQueues, LabelSet, ReadyActionRecord, ReadyActions,
};
use crate::turn::{Outcome, Turn};
use std::sync::Arc;

/// Whose queues.
pub(super) type ActionKey = (Namespace, ActionName);

/// Counts an action run that is about to be opened.
///
/// # Errors
/// [`Rejection::TooMany`] when its labels are none that others ask for, and no queue is left.
pub(crate) fn open(turn: &mut Turn<'_, '_>, record: &ActionRunRecord) -> Outcome<()> {
    if record.labels.is_empty() {
        return Ok(());
    }
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    if let Some((place, mut queue)) = find(turn, &counts, record)? {
        queue.open_count += 1;
        turn.put::<LabelQueues>(&row(&key, place), queue);
        return Ok(());
    }
    let too_many = || {
        let noun = format!("sets of labels of open runs of action \"{}\"", key.1);
        Rejection::too_many(&noun, LABEL_QUEUES_MAX)
    };
    let place = counts.label_queues.first_free().ok_or_else(too_many)?;
    let queue = LabelQueueRecord {
        labels: record.labels.clone(),
        open_count: 1,
        waiting_count: 0,
    };
    turn.put::<LabelQueues>(&row(&key, place), queue);
    counts.label_queues.set(place, true);
    put_counts(turn, &key, counts);
    Ok(())
}

/// Counts an action run that has ended; it waits in no queue any more.
pub(super) fn close(turn: &mut Turn<'_, '_>, record: &ActionRunRecord) -> Result<(), StoreError> {
    if record.labels.is_empty() {
        return Ok(());
    }
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    let (place, mut queue) = find_own(turn, &counts, record)?;
    queue.open_count -= 1;
    if queue.open_count > 0 {
        turn.put::<LabelQueues>(&row(&key, place), queue);
        return Ok(());
    }
    turn.delete::<LabelQueues>(&row(&key, place));
    counts.label_queues.set(place, false);
    put_counts(turn, &key, counts);
    Ok(())
}

/// Changes how many tasks wait in an open action run's queue.
pub(super) fn change_waiting(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
    change: impl FnOnce(&mut u64),
) -> Result<(), StoreError> {
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    let (place, mut queue) = find_own(turn, &counts, record)?;
    let was_waiting = queue.waiting_count > 0;
    change(&mut queue.waiting_count);
    let is_waiting = queue.waiting_count > 0;
    turn.put::<LabelQueues>(&row(&key, place), queue);
    if was_waiting != is_waiting {
        counts.label_queues_waiting.set(place, is_waiting);
        put_counts(turn, &key, counts);
    }
    Ok(())
}

/// The labels of the queues in which tasks wait.
pub(super) fn waiting(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
    counts: &ReadyActionRecord,
) -> Result<Vec<LabelSet>, StoreError> {
    let mut queues = Vec::new();
    for place in counts.label_queues_waiting.iter() {
        let queue = get(turn, key, place)?;
        queues.push(LabelSet(queue.labels.clone()));
    }
    Ok(queues)
}

/// What waits of an action.
pub(super) fn counts(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
) -> Result<ReadyActionRecord, StoreError> {
    let counts = turn.get::<ReadyActions>(key)?;
    Ok(counts.map(Arc::unwrap_or_clone).unwrap_or_default())
}

/// Writes what waits of an action.
pub(super) fn put_counts(turn: &mut Turn<'_, '_>, key: &ActionKey, counts: ReadyActionRecord) {
    if counts == ReadyActionRecord::default() {
        turn.delete::<ReadyActions>(key);
    } else {
        turn.put::<ReadyActions>(key, counts);
    }
}

/// The queue of the labels that the action run asks for.
fn find(
    turn: &mut Turn<'_, '_>,
    counts: &ReadyActionRecord,
    record: &ActionRunRecord,
) -> Result<Option<(u8, LabelQueueRecord)>, StoreError> {
    let key = key_of(record);
    for place in counts.label_queues.iter() {
        let queue = get(turn, &key, place)?;
        if queue.labels == record.labels {
            return Ok(Some((place, Arc::unwrap_or_clone(queue))));
        }
    }
    Ok(None)
}

fn find_own(
    turn: &mut Turn<'_, '_>,
    counts: &ReadyActionRecord,
    record: &ActionRunRecord,
) -> Result<(u8, LabelQueueRecord), StoreError> {
    let queue = find(turn, counts, record)?;
    Ok(queue.expect("an open action run's labels have a queue"))
}

fn get(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
    place: u8,
) -> Result<Arc<LabelQueueRecord>, StoreError> {
    let queue = turn.get::<LabelQueues>(&row(key, place))?;
    Ok(queue.expect("a place that is taken has a queue"))
}

fn row((namespace, action): &ActionKey, place: u8) -> (Namespace, ActionName, u8) {
    (namespace.clone(), action.clone(), place)
}

fn key_of(record: &ActionRunRecord) -> ActionKey {
    (record.namespace.clone(), record.action.clone())
}
