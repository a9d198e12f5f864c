//! Taking records as a consumer (A31).

use super::choose::Choice;
use super::consumer::Holder;
use super::lease::{self, end_of_lease};
use super::{consumer, require};
use crate::ids::{ConsumerName, GroupRef, Namespace, TakeId};
use crate::limits::READ_RECORDS_MAX;
use crate::reply::RecordsTaken;
use crate::tables::{DeliveredRecord, Deliveries, DeliveryRecord, Groups};
use crate::turn::{Turn, TurnResult};
use crate::{stream, worker};
use serde::{Deserialize, Serialize};

/// Delivers records to a consumer for the group's ack timeout. If there are none, nothing is written: a caller that
/// wants to wait does so outside the engine, for the effects that announce records.
///
/// A resent take returns the rest of the original delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeRecords {
    /// The group.
    pub group: GroupRef,
    /// The consumer, which must have joined.
    pub consumer: ConsumerName,
    /// The consumer's process; a replaced process is rejected.
    pub incarnation: u64,
    /// The id of the take.
    pub take: TakeId,
    /// The maximum number of records.
    pub count_max: u32,
}

impl TakeRecords {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<RecordsTaken> {
        let mut target = require(turn, namespace, &self.group)?;
        let consumer = consumer::require_joined(turn, target.0, &self.consumer, self.incarnation)?;
        let key = (target.0, self.consumer.clone(), self.take);
        if let Some(given) = turn.get::<Deliveries>(&key)? {
            // Records that an older process took under the same id must be returned first.
            let is_own = given.consumer == consumer.number;
            return Ok(taken(if is_own { given.records.len() } else { 0 }));
        }
        if let Some(worker) = &consumer.worker
            && worker::is_draining(turn, (namespace, worker))?
        {
            return Ok(taken(0));
        }
        let stream = stream::load(turn, target.1.stream)?;
        let count_max = usize::try_from(self.count_max).unwrap_or(usize::MAX);
        let count_max = count_max.min(READ_RECORDS_MAX);
        let mut choice = Choice::new(&mut target, &stream, consumer.number, count_max);
        choice.fill(turn)?;
        let (chosen, is_anything_lost) = (choice.chosen, choice.is_anything_lost);
        if !chosen.is_empty() {
            let ack_timeout_ms = target.1.settings.ack_timeout_ms();
            let expires_at_ms = end_of_lease(turn.now_ms(), ack_timeout_ms);
            let records = chosen.iter().map(|chosen| DeliveredRecord {
                id: chosen.id,
                partition: chosen.partition,
                attempt: chosen.attempt,
                expires_at_ms,
            });
            let delivery = DeliveryRecord {
                consumer: consumer.number,
                records: records.collect(),
            };
            turn.put::<Deliveries>(&key, delivery);
            lease::begin(turn, &mut target, chosen.len(), expires_at_ms);
            let holder = Holder {
                name: &self.consumer,
                number: consumer.number,
            };
            consumer::note_heartbeat(turn, target.0, &holder)?;
        }
        if is_anything_lost || !chosen.is_empty() {
            turn.put::<Groups>(&target.0, target.1);
        }
        Ok(taken(chosen.len()))
    }
}

fn taken(count: usize) -> RecordsTaken {
    let count = u32::try_from(count).expect("a delivery is bounded");
    RecordsTaken { count }
}
