//! Records that wait for redelivery, in order: one order per group, by due time; in the modes that keep order, one per
//! partition, by id.
//!
//! For each order, a group knows a position before which no row lies, so that scans skip the tombstones of taken rows
//! (design rule 4).

use super::{NumberedGroup, partition_of};
use crate::ids::GroupNumber;
use crate::store::{KeyRange, StoreError};
use crate::stream::RecordId;
use crate::tables::{GroupRecord, Redeliveries, RedeliveryRecord, range_from};
use crate::turn::Turn;
use std::ops::ControlFlow;

/// Names a waiting record.
pub(super) type RedeliveryKey = (GroupNumber, u64, RecordId);

/// The orders in which records of a group wait: the group's single order, or one per partition.
pub(crate) fn orders(group: &GroupRecord) -> impl Iterator<Item = Option<u32>> {
    let keeps_order = group.keeps_order();
    let whole = (!keeps_order && group.waiting_count() > 0).then_some(None);
    let partitions = (0_u32..).zip(&group.partitions);
    let parts = partitions.filter(move |(_, own)| keeps_order && own.waiting_count > 0);
    whole
        .into_iter()
        .chain(parts.map(|(partition, _)| Some(partition)))
}

/// The key range of an order.
pub(crate) fn range(number: GroupNumber, group: &GroupRecord, order: Option<u32>) -> KeyRange {
    let Some(partition) = order else {
        let from = (number, group.waiting_from_ms, RecordId::START);
        return range_from::<Redeliveries>(&number, &from);
    };
    let from = group
        .partition(partition)
        .map_or(RecordId::START, |own| own.waiting_from);
    let rank = u64::from(partition);
    range_from::<Redeliveries>(&(number, rank), &(number, rank, from))
}

/// Adds a waiting record.
pub(super) fn put(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
    id: RecordId,
    waiting: RedeliveryRecord,
) {
    let (number, group) = target;
    let key = (*number, group.rank(&waiting), id);
    if group.waiting_count() == 0 || waiting.due_ms < group.waiting_from_ms {
        group.waiting_from_ms = waiting.due_ms;
    }
    let own = partition_of(group, waiting.partition);
    if own.waiting_count == 0 || id < own.waiting_from {
        own.waiting_from = id;
    }
    own.waiting_count += 1;
    turn.put::<Redeliveries>(&key, waiting);
}

/// Removes the first record of its order.
pub(super) fn take(
    turn: &mut Turn<'_, '_>,
    group: &mut GroupRecord,
    key: &RedeliveryKey,
    waiting: &RedeliveryRecord,
) {
    turn.delete::<Redeliveries>(key);
    group.waiting_from_ms = waiting.due_ms;
    let own = partition_of(group, waiting.partition);
    own.waiting_from = key.2;
    own.waiting_count -= 1;
}

/// Whether some waiting records may be redelivered, and when the next of the others may.
pub(super) fn find_due(
    turn: &Turn<'_, '_>,
    (number, group): &NumberedGroup,
) -> Result<(bool, Option<u64>), StoreError> {
    let now_ms = turn.now_ms();
    if !group.keeps_order() {
        return find_due_by_time(turn, *number, group, now_ms);
    }
    let mut is_ready = false;
    let mut next_ms: Option<u64> = None;
    for order in orders(group) {
        // In an order that is kept, the first record that is not due blocks those after it.
        turn.visit_range::<Redeliveries>(&range(*number, group, order), |_, waiting| {
            if waiting.due_ms <= now_ms {
                is_ready = true;
                return ControlFlow::Continue(());
            }
            let due_ms = waiting.due_ms;
            next_ms = Some(next_ms.map_or(due_ms, |next_ms| next_ms.min(due_ms)));
            ControlFlow::Break(())
        })?;
    }
    Ok((is_ready, next_ms))
}

/// Like [`find_due`], for records in the order of their due time. Reads two keys, however many records are due.
fn find_due_by_time(
    turn: &Turn<'_, '_>,
    number: GroupNumber,
    group: &GroupRecord,
    now_ms: u64,
) -> Result<(bool, Option<u64>), StoreError> {
    if group.waiting_count() == 0 {
        return Ok((false, None));
    }
    let first_from = |due_ms: u64| {
        let from = (number, due_ms, RecordId::START);
        let first = turn.first_key_from::<Redeliveries>(&number, &from)?;
        Ok::<_, StoreError>(first.map(|(_, due_ms, _)| due_ms))
    };
    match first_from(group.waiting_from_ms)? {
        Some(due_ms) if due_ms <= now_ms => Ok((true, first_from(now_ms.saturating_add(1))?)),
        next_ms => Ok((false, next_ms)),
    }
}
