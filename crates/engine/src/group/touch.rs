//! Keeping records longer (A31).

use super::{GroupRef, TakeId, arm_leases, consumer, require, settle::keep};
use crate::ids::{ConsumerName, Namespace};
use crate::limits::LEASE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::stream::RecordId;
use crate::tables::{DeliveredRecord, Deliveries, Groups};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Sets the ack timeout of records to end after `extend_ms` from now. Refused when none of them is in
/// flight in this take any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchRecords {
    /// The group.
    pub group: GroupRef,
    /// Who has them.
    pub consumer: ConsumerName,
    /// The take that gave them.
    pub take: TakeId,
    /// Their ids.
    pub records: Vec<RecordId>,
    /// In milliseconds; at most a day.
    pub extend_ms: u64,
}

impl TouchRecords {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let delivery = turn.get::<Deliveries>(&key)?;
        let delivery = delivery.ok_or(Rejection::DeliveryGone)?;
        let ids: BTreeSet<&RecordId> = self.records.iter().collect();
        if !delivery
            .records
            .iter()
            .any(|record| ids.contains(&record.id))
        {
            return Err(Rejection::DeliveryGone.into());
        }
        let expires_at_ms = turn
            .now_ms()
            .saturating_add(self.extend_ms.min(LEASE_MS_MAX));
        let extend = |record: &DeliveredRecord| match ids.contains(&record.id) {
            true => DeliveredRecord {
                expires_at_ms,
                ..*record
            },
            false => *record,
        };
        let records = delivery.records.iter().map(extend).collect();
        keep(turn, &key, (delivery.consumer, records));
        consumer::hear(turn, target.0, &self.consumer)?;
        // The lease may have been shortened; one that was extended is found at its old time.
        if target
            .1
            .leases_due_ms
            .is_none_or(|due_ms| expires_at_ms < due_ms)
        {
            arm_leases(turn, &mut target, expires_at_ms);
            turn.put::<Groups>(&target.0, target.1);
        }
        Ok(Reply::LeaseExtended { expires_at_ms })
    }
}
