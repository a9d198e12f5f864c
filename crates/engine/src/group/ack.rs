//! Acking and nacking records (A31).

use super::consumer::{self, Holder};
use super::redelivery::{Reason, return_record};
use super::{DeliveryKey, NumberedGroup, announce, lease, require};
use crate::ids::{ConsumerName, GroupRef, Namespace, TakeId};
use crate::limits::{LEASE_MS_MAX, PENDING_MAX};
use crate::reply::DeliveriesEnded;
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{DeliveredRecord, Deliveries, DeliveryRecord, GroupRecord, Groups};
use crate::turn::{Turn, TurnResult};
use crate::worker::{self, Counts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Marks deliveries as consumed: their records are never delivered again. Records that are no longer in flight in this
/// take are ignored, so the command can be resent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRecords {
    /// The group.
    pub group: GroupRef,
    /// The consumer that took the records.
    pub consumer: ConsumerName,
    /// The take that delivered them.
    pub take: TakeId,
    /// The ids of the records.
    pub records: Vec<RecordId>,
}

/// Returns deliveries: their records are redelivered after a delay, or go to the dead-letter stream after too many
/// deliveries. Records that are no longer in flight in this take are ignored, so the command can be resent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NackRecords {
    /// The group.
    pub group: GroupRef,
    /// The consumer that took the records.
    pub consumer: ConsumerName,
    /// The take that delivered them.
    pub take: TakeId,
    /// The ids of the records.
    pub records: Vec<RecordId>,
    /// The delay before redelivery, in milliseconds; at most a day.
    pub delay_ms: u64,
}

impl AckRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<DeliveriesEnded> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let was_full = target.1.pending_count() >= PENDING_MAX;
        let Some((number, removed)) = remove_delivered(turn, &key, &self.records)? else {
            return Ok(DeliveriesEnded { count: 0 });
        };
        for record in &removed {
            lease::land(&mut target.1, record);
            target.1.acked_count += 1;
        }
        if was_full || removed.iter().any(|record| frees(&target.1, record)) {
            announce(turn, &target.1)?;
        }
        let name = &self.consumer;
        let holder = Holder { name, number };
        if let Some(worker) = consumer::worker_of(turn, target.0, &holder)? {
            let counts = Counts {
                completed: removed.len() as u64,
                failed: 0,
            };
            worker::count_records(turn, (namespace, &worker), &self.group, counts)?;
        }
        finish(turn, target, &holder, removed.len())
    }
}

impl NackRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<DeliveriesEnded> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let Some((number, removed)) = remove_delivered(turn, &key, &self.records)? else {
            return Ok(DeliveriesEnded { count: 0 });
        };
        let delay_ms = self.delay_ms.min(LEASE_MS_MAX);
        let due_ms = turn.now_ms().saturating_add(delay_ms);
        let mut is_ready = self.delay_ms == 0;
        for record in &removed {
            let is_dead_letter =
                return_record(turn, &mut target, record, Reason::Refused { due_ms })?;
            is_ready |= is_dead_letter || frees(&target.1, record);
        }
        if is_ready {
            announce(turn, &target.1)?;
        }
        let name = &self.consumer;
        let holder = Holder { name, number };
        if let Some(worker) = consumer::worker_of(turn, target.0, &holder)? {
            let counts = Counts {
                completed: 0,
                failed: removed.len() as u64,
            };
            worker::count_records(turn, (namespace, &worker), &self.group, counts)?;
        }
        finish(turn, target, &holder, removed.len())
    }
}

/// Removes the records of `ids` from a delivery and returns them with the process that held them; `None` if the
/// delivery contains none of them.
fn remove_delivered(
    turn: &mut Turn<'_, '_>,
    key: &DeliveryKey,
    ids: &[RecordId],
) -> Result<Option<(u32, Vec<DeliveredRecord>)>, StoreError> {
    let Some(delivery) = turn.get::<Deliveries>(key)? else {
        return Ok(None);
    };
    let ids: BTreeSet<&RecordId> = ids.iter().collect();
    let records = delivery.records.iter().copied();
    let (removed, left): (Vec<_>, Vec<_>) = records.partition(|record| ids.contains(&record.id));
    if removed.is_empty() {
        return Ok(None);
    }
    keep(turn, key, delivery.consumer, left);
    Ok(Some((delivery.consumer, removed)))
}

/// Stores the rest of a delivery.
pub(super) fn keep(
    turn: &mut Turn<'_, '_>,
    key: &DeliveryKey,
    consumer: u32,
    records: Vec<DeliveredRecord>,
) {
    if records.is_empty() {
        turn.delete::<Deliveries>(key);
    } else {
        turn.put::<Deliveries>(key, DeliveryRecord { consumer, records });
    }
}

/// Whether a partition can now go to another consumer, which had to wait for it.
fn frees(group: &GroupRecord, record: &DeliveredRecord) -> bool {
    group.keeps_order()
        && group.partition(record.partition).is_some_and(|partition| {
            let is_moving = partition.assigned != Some(partition.holder);
            partition.in_flight_count == 0 && is_moving
        })
}

/// Stores a group after some of its deliveries ended.
fn finish(
    turn: &mut Turn<'_, '_>,
    target: NumberedGroup,
    holder: &Holder<'_>,
    count: usize,
) -> TurnResult<DeliveriesEnded> {
    let (number, group) = target;
    turn.put::<Groups>(&number, group);
    consumer::note_heartbeat(turn, number, holder)?;
    let count = u32::try_from(count).expect("a delivery is bounded");
    Ok(DeliveriesEnded { count })
}
