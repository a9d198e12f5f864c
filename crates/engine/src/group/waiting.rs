//! Records that wait to go out again, in their orders: one of a group, by the time when they are due;
//! in the modes that keep order one of each partition, by id.
//!
//! A group knows for each order a place that no row lies before, so that no scan walks the rows that
//! were taken (design rule 4).

use super::{Numbered, partition_of};
use crate::ids::GroupNumber;
use crate::store::{KeyRange, StoreError};
use crate::stream::RecordId;
use crate::tables::{GroupRecord, Redeliveries, RedeliveryRecord, range_from};
use crate::turn::Turn;
use std::ops::ControlFlow;

/// Names a record that waits.
pub(super) type RedeliveryKey = (GroupNumber, u64, RecordId);

/// The orders in which records of a group wait now: the one of the group, or those of partitions.
pub(crate) fn orders(group: &GroupRecord) -> impl Iterator<Item = Option<u32>> {
    let keeps_order = group.keeps_order();
    let whole = (!keeps_order && group.waiting_count() > 0).then_some(None);
    let partitions = (0_u32..).zip(&group.partitions);
    let parts = partitions.filter(move |(_, own)| keeps_order && own.waiting_count > 0);
    whole
        .into_iter()
        .chain(parts.map(|(partition, _)| Some(partition)))
}

/// Where the rows of an order lie.
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

/// Lets a record wait.
pub(super) fn put(
    turn: &mut Turn<'_, '_>,
    (number, group): &mut Numbered,
    (id, waiting): (RecordId, RedeliveryRecord),
) {
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

/// Takes the first record of its order out.
pub(super) fn take(
    turn: &mut Turn<'_, '_>,
    group: &mut GroupRecord,
    (key, waiting): (&RedeliveryKey, &RedeliveryRecord),
) {
    turn.delete::<Redeliveries>(key);
    group.waiting_from_ms = waiting.due_ms;
    let own = partition_of(group, waiting.partition);
    own.waiting_from = key.2;
    own.waiting_count -= 1;
}

/// Whether some of the records that wait may go out again, and when the next of the others may.
pub(super) fn look(
    turn: &Turn<'_, '_>,
    (number, group): &Numbered,
) -> Result<(bool, Option<u64>), StoreError> {
    let now_ms = turn.now_ms();
    if !group.keeps_order() {
        return look_by_time(turn, (*number, group), now_ms);
    }
    let mut is_ready = false;
    let mut next_ms: Option<u64> = None;
    for order in orders(group) {
        // Behind the first one that is not due, an order that is kept keeps the others back.
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

/// As [`look`], where records wait in the order of their time: however many are due, two keys are read.
fn look_by_time(
    turn: &Turn<'_, '_>,
    (number, group): (GroupNumber, &GroupRecord),
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
