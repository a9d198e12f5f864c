//! The queues of an action's tasks that require labels (A3).
//!
//! Each label set that open action runs require has its own queue. Their number is limited, so that assignment can
//! consider all of them and never passes over an older task. Each queue has a slot number, and the action's record
//! lists the slots in which tasks wait, so that no lookup scans.

use crate::ids::{ActionName, Namespace};
use crate::limits::LABEL_QUEUES_MAX;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{
    ActionRunRecord, LabelQueueRecord, LabelQueues, LabelSet, ReadyActionRecord, ReadyActions,
};
use crate::turn::{Turn, TurnResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The action that the queues belong to.
pub(super) type ActionKey = (Namespace, ActionName);

/// Counts an action run that is about to be created.
///
/// # Errors
/// [`Rejection::LimitExceeded`] if its label set has no queue yet and all queues are in use.
pub(crate) fn open(turn: &mut Turn<'_, '_>, record: &ActionRunRecord) -> TurnResult<()> {
    if record.labels.is_empty() {
        return Ok(());
    }
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    if let Some((position, mut queue)) = find(turn, &counts, &key, &record.labels)? {
        queue.open_count += 1;
        turn.put::<LabelQueues>(&row(&key, position), queue);
        return Ok(());
    }
    let too_many = || {
        let noun = format!("sets of labels of open runs of action \"{}\"", key.1);
        Rejection::too_many(&noun, LABEL_QUEUES_MAX)
    };
    let position = counts.label_queues.first_free().ok_or_else(too_many)?;
    let queue = LabelQueueRecord {
        labels: record.labels.clone(),
        open_count: 1,
        waiting_count: 0,
    };
    turn.put::<LabelQueues>(&row(&key, position), queue);
    counts.label_queues.set(position, true);
    put_counts(turn, &key, counts);
    Ok(())
}

/// Whether an action run with these labels can be created.
pub(crate) fn has_room(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
    labels: &BTreeMap<String, String>,
) -> Result<bool, StoreError> {
    if labels.is_empty() {
        return Ok(true);
    }
    let counts = counts(turn, key)?;
    let has_free = counts.label_queues.first_free().is_some();
    Ok(has_free || find(turn, &counts, key, labels)?.is_some())
}

/// Stops counting an action run that has ended and waits in no queue.
pub(super) fn close(turn: &mut Turn<'_, '_>, record: &ActionRunRecord) -> Result<(), StoreError> {
    if record.labels.is_empty() {
        return Ok(());
    }
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    let (position, mut queue) = find_own(turn, &counts, record)?;
    queue.open_count -= 1;
    if queue.open_count > 0 {
        turn.put::<LabelQueues>(&row(&key, position), queue);
        return Ok(());
    }
    turn.delete::<LabelQueues>(&row(&key, position));
    counts.label_queues.set(position, false);
    put_counts(turn, &key, counts);
    Ok(())
}

/// Changes the number of tasks that wait in an open action run's queue.
pub(super) fn change_waiting(
    turn: &mut Turn<'_, '_>,
    record: &ActionRunRecord,
    change: impl FnOnce(&mut u64),
) -> Result<(), StoreError> {
    let key = key_of(record);
    let mut counts = counts(turn, &key)?;
    let (position, mut queue) = find_own(turn, &counts, record)?;
    let was_waiting = queue.waiting_count > 0;
    change(&mut queue.waiting_count);
    let is_waiting = queue.waiting_count > 0;
    turn.put::<LabelQueues>(&row(&key, position), queue);
    if was_waiting != is_waiting {
        counts.label_queues_waiting.set(position, is_waiting);
        put_counts(turn, &key, counts);
    }
    Ok(())
}

/// The label sets of the queues in which tasks wait.
pub(super) fn waiting(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
    counts: &ReadyActionRecord,
) -> Result<Vec<LabelSet>, StoreError> {
    let mut queues = Vec::new();
    for position in counts.label_queues_waiting.iter() {
        let queue = get(turn, key, position)?;
        queues.push(LabelSet(queue.labels.clone()));
    }
    Ok(queues)
}

/// The counts of an action's waiting tasks.
pub(super) fn counts(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
) -> Result<ReadyActionRecord, StoreError> {
    let counts = turn.get::<ReadyActions>(key)?;
    Ok(counts.map(Arc::unwrap_or_clone).unwrap_or_default())
}

/// Writes the counts of an action's waiting tasks.
pub(super) fn put_counts(turn: &mut Turn<'_, '_>, key: &ActionKey, counts: ReadyActionRecord) {
    if counts == ReadyActionRecord::default() {
        turn.delete::<ReadyActions>(key);
    } else {
        turn.put::<ReadyActions>(key, counts);
    }
}

/// The queue of a label set that open action runs require.
fn find(
    turn: &mut Turn<'_, '_>,
    counts: &ReadyActionRecord,
    key: &ActionKey,
    labels: &BTreeMap<String, String>,
) -> Result<Option<(u8, LabelQueueRecord)>, StoreError> {
    for position in counts.label_queues.iter() {
        let queue = get(turn, key, position)?;
        if queue.labels == *labels {
            return Ok(Some((position, Arc::unwrap_or_clone(queue))));
        }
    }
    Ok(None)
}

fn find_own(
    turn: &mut Turn<'_, '_>,
    counts: &ReadyActionRecord,
    record: &ActionRunRecord,
) -> Result<(u8, LabelQueueRecord), StoreError> {
    let queue = find(turn, counts, &key_of(record), &record.labels)?;
    Ok(queue.expect("an open action run's labels have a queue"))
}

fn get(
    turn: &mut Turn<'_, '_>,
    key: &ActionKey,
    position: u8,
) -> Result<Arc<LabelQueueRecord>, StoreError> {
    let queue = turn.get::<LabelQueues>(&row(key, position))?;
    Ok(queue.expect("a place that is taken has a queue"))
}

fn row((namespace, action): &ActionKey, position: u8) -> (Namespace, ActionName, u8) {
    (namespace.clone(), action.clone(), position)
}

fn key_of(record: &ActionRunRecord) -> ActionKey {
    (record.namespace.clone(), record.action.clone())
}
