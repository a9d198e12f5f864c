//! Keeping records longer (A31).

use super::lease::{self, end_of_lease};
use super::{GroupRef, TakeId, consumer, consumer::Holder, require, settle::keep};
use crate::ids::{ConsumerName, Namespace};
use crate::limits::LEASE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::LeaseExtended;
use crate::stream::RecordId;
use crate::tables::{Deliveries, Groups};
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
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> Outcome<LeaseExtended> {
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
        let extend_ms = self.extend_ms.min(LEASE_MS_MAX);
        let expires_at_ms = end_of_lease(turn.now_ms(), extend_ms);
        let mut records = delivery.records.clone();
        for record in records.iter_mut().filter(|one| ids.contains(&one.id)) {
            lease::end(&mut target.1, record);
            lease::begin(turn, &mut target, (1, expires_at_ms));
            record.expires_at_ms = expires_at_ms;
        }
        keep(turn, &key, (delivery.consumer, records));
        turn.put::<Groups>(&target.0, target.1);
        let holder = Holder {
            name: &self.consumer,
            number: delivery.consumer,
        };
        consumer::hear(turn, target.0, &holder)?;
        Ok(LeaseExtended { expires_at_ms })
    }
}
