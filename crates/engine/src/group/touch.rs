//! Extending ack deadlines (A31).

use super::ack::keep;
use super::consumer::Holder;
use super::lease::{self, end_of_lease};
use super::{consumer, require};
use crate::ids::{ConsumerName, GroupRef, Namespace, TakeId};
use crate::limits::LEASE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::LeaseExtended;
use crate::stream::RecordId;
use crate::tables::{Deliveries, Groups};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Sets the ack deadline of records to `extend_ms` from now. Rejected if none of them is still in flight in this take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchRecords {
    /// The group.
    pub group: GroupRef,
    /// The consumer that took the records.
    pub consumer: ConsumerName,
    /// The take that delivered them.
    pub take: TakeId,
    /// The ids of the records.
    pub records: Vec<RecordId>,
    /// The extension, in milliseconds; at most a day.
    pub extend_ms: u64,
}

impl TouchRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<LeaseExtended> {
        let mut target = require(turn, namespace, &self.group)?;
        let key = (target.0, self.consumer.clone(), self.take);
        let delivery = turn.get::<Deliveries>(&key)?;
        let delivery = delivery.ok_or(Rejection::DeliveryEnded)?;
        let ids: BTreeSet<&RecordId> = self.records.iter().collect();
        if !delivery
            .records
            .iter()
            .any(|record| ids.contains(&record.id))
        {
            return Err(Rejection::DeliveryEnded.into());
        }
        let extend_ms = self.extend_ms.min(LEASE_MS_MAX);
        let expires_at_ms = end_of_lease(turn.now_ms(), extend_ms);
        let mut records = delivery.records.clone();
        for record in records.iter_mut().filter(|one| ids.contains(&one.id)) {
            lease::end(&mut target.1, record);
            lease::begin(turn, &mut target, 1, expires_at_ms);
            record.expires_at_ms = expires_at_ms;
        }
        keep(turn, &key, delivery.consumer, records);
        turn.put::<Groups>(&target.0, target.1);
        let holder = Holder {
            name: &self.consumer,
            number: delivery.consumer,
        };
        consumer::note_heartbeat(turn, target.0, &holder)?;
        Ok(LeaseExtended { expires_at_ms })
    }
}
