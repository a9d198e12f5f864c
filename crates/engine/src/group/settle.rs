//! Acknowledging records, and giving them back (A31).

use super::consumer::{self, Holder};
use super::give_back::{Reason, give_back};
use super::{DeliveryKey, GroupRef, Numbered, TakeId, announce, lease, require};
use crate::ids::{ConsumerName, Namespace};
use crate::limits::{LEASE_MS_MAX, PENDING_MAX};
use crate::reply::RecordsSettled;
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{DeliveredRecord, Deliveries, DeliveryRecord, GroupRecord, Groups};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Says that records are processed: they never go out again. Those that are not in flight in this
/// take any more are passed over, so it can be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRecords {
    /// The group.
    pub group: GroupRef,
    /// Who had them.
    pub consumer: ConsumerName,
    /// The take that gave them.
    pub take: TakeId,
    /// Their ids.
    pub records: Vec<RecordId>,
}

/// Gives records back: they go out again after a delay, or to the dead-letter stream once they went
/// out too often. Those that are not in flight in this take any more are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NackRecords {
    /// The group.
    pub group: GroupRef,
    /// Who had them.
    pub consumer: ConsumerName,
    /// The take that gave them.
    pub take: TakeId,
    /// Their ids.
    pub records: Vec<RecordId>,
    /// In milliseconds; at most a day.
    pub delay_ms: u64,
}

impl AckRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<RecordsSettled> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let was_full = target.1.pending_count() >= PENDING_MAX;
        let Some((number, settled)) = settle(turn, &key, &self.records)? else {
            return Ok(RecordsSettled { count: 0 });
        };
        for record in &settled {
            lease::land(&mut target.1, record);
            target.1.acked_count += 1;
        }
        if was_full || settled.iter().any(|record| frees(&target.1, record)) {
            announce(turn, &target.1)?;
        }
        let name = &self.consumer;
        let holder = Holder { name, number };
        let counts = (settled.len() as u64, 0);
        consumer::count(turn, (namespace, target.0), (&self.group, &holder), counts)?;
        finish(turn, target, (&holder, settled.len()))
    }
}

impl NackRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<RecordsSettled> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let Some((number, settled)) = settle(turn, &key, &self.records)? else {
            return Ok(RecordsSettled { count: 0 });
        };
        let delay_ms = self.delay_ms.min(LEASE_MS_MAX);
        let due_ms = turn.now_ms().saturating_add(delay_ms);
        let mut is_ready = self.delay_ms == 0;
        for record in &settled {
            let is_buried = give_back(turn, &mut target, record, Reason::Refused { due_ms })?;
            is_ready |= is_buried || frees(&target.1, record);
        }
        if is_ready {
            announce(turn, &target.1)?;
        }
        let name = &self.consumer;
        let holder = Holder { name, number };
        let counts = (0, settled.len() as u64);
        consumer::count(turn, (namespace, target.0), (&self.group, &holder), counts)?;
        finish(turn, target, (&holder, settled.len()))
    }
}

/// Takes records out of a delivery, those of `ids` that are in it, and says which process had them;
/// `None` when none is.
fn settle(
    turn: &mut Turn<'_, '_>,
    key: &DeliveryKey,
    ids: &[RecordId],
) -> Result<Option<(u32, Vec<DeliveredRecord>)>, StoreError> {
    let Some(delivery) = turn.get::<Deliveries>(key)? else {
        return Ok(None);
    };
    let ids: BTreeSet<&RecordId> = ids.iter().collect();
    let records = delivery.records.iter().copied();
    let (settled, left): (Vec<_>, Vec<_>) = records.partition(|record| ids.contains(&record.id));
    if settled.is_empty() {
        return Ok(None);
    }
    keep(turn, key, (delivery.consumer, left));
    Ok(Some((delivery.consumer, settled)))
}

/// Stores what is left of a delivery.
pub(super) fn keep(
    turn: &mut Turn<'_, '_>,
    key: &DeliveryKey,
    (consumer, records): (u32, Vec<DeliveredRecord>),
) {
    if records.is_empty() {
        turn.delete::<Deliveries>(key);
    } else {
        turn.put::<Deliveries>(key, DeliveryRecord { consumer, records });
    }
}

/// Whether a partition now goes to another consumer, which could not have it before.
fn frees(group: &GroupRecord, record: &DeliveredRecord) -> bool {
    group.keeps_order()
        && group.partition(record.partition).is_some_and(|partition| {
            let is_moving = partition.assigned != Some(partition.holder);
            partition.in_flight_count == 0 && is_moving
        })
}

/// Stores a group some of whose records were settled.
fn finish(
    turn: &mut Turn<'_, '_>,
    (number, group): Numbered,
    (holder, count): (&Holder<'_>, usize),
) -> Outcome<RecordsSettled> {
    turn.put::<Groups>(&number, group);
    consumer::hear(turn, number, holder)?;
    let count = u32::try_from(count).expect("a delivery is bounded");
    Ok(RecordsSettled { count })
}
