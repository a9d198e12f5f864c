//! A group's timer: leases that have ended, consumers that are silent, delays that are over.
//!
//! One timer a group, not one a record: it is set for the earliest of all, and looks for itself what
//! has fallen due. What it looks through is bounded by the records that a group may have in flight.

use super::give_back::{Reason, give_back};
use super::settle::keep;
use super::{DeliveryKey, Numbered, announce, arm, consumer, delete};
use crate::ids::{ConsumerName, GroupNumber};
use crate::limits::{CONSUMERS_MAX, SWEEP_ROWS_MAX};
use crate::store::StoreError;
use crate::tables::{
    Consumers, DeliveredRecord, Deliveries, DeliveryRecord, Groups, Redeliveries, RedeliveryRecord,
};
use crate::turn::{Outcome, Turn};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Records that one firing moves to the dead-letter stream at most: each may be of 1 MiB.
const BURIALS_MAX: usize = 16;

/// The group's timer fires.
pub(crate) fn fall_due(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Outcome<()> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    let mut target = (number, Arc::unwrap_or_clone(group));
    target.1.timer_due_ms = None;
    if target.1.is_deleted {
        return Ok(delete::sweep(turn, target)?);
    }
    let now_ms = turn.now_ms();
    let is_due = |due_ms: Option<u64>| due_ms.is_some_and(|due_ms| due_ms <= now_ms);
    if is_due(target.1.silence_due_ms) {
        consumer::remove_silent(turn, &mut target)?;
    }
    let mut is_ready = is_due(target.1.leases_due_ms) && end_leases(turn, &mut target)?;
    let waiting_due_ms = look_at_waiting(turn, &target, &mut is_ready)?;
    if is_ready {
        announce(turn, &target.1)?;
    }
    let dues = [
        waiting_due_ms,
        target.1.leases_due_ms,
        target.1.silence_due_ms,
    ];
    if let Some(due_ms) = dues.into_iter().flatten().min() {
        arm(turn, &mut target, due_ms);
    }
    turn.put::<Groups>(&number, target.1);
    Ok(())
}

/// Gives back what was not settled in time and what belongs to consumers that are gone; a piece of
/// it, if it is much. True when there was something.
fn end_leases(turn: &mut Turn<'_, '_>, target: &mut Numbered) -> Result<bool, StoreError> {
    let now_ms = turn.now_ms();
    let (ended, mut next_ms) = find_ended(turn, target.0)?;
    let mut rows_left = SWEEP_ROWS_MAX;
    let mut burials_left = BURIALS_MAX;
    for (key, delivery, is_abandoned) in ended {
        let mut left = Vec::new();
        for record in &delivery.records {
            let has_ended = is_abandoned || record.expires_at_ms <= now_ms;
            if !has_ended || rows_left == 0 || burials_left == 0 {
                left.push(*record);
                continue;
            }
            let reason = if is_abandoned {
                Reason::Abandoned
            } else {
                Reason::Expired
            };
            let is_buried = give_back(turn, target, record, reason)?;
            rows_left -= 1;
            burials_left -= usize::from(is_buried);
        }
        let left_ms = left
            .iter()
            .map(|record: &DeliveredRecord| match is_abandoned {
                true => now_ms,
                false => record.expires_at_ms,
            });
        next_ms = left_ms.chain(next_ms).min();
        if left.len() < delivery.records.len() {
            keep(turn, &key, (delivery.consumer, left));
        }
    }
    target.1.leases_due_ms = next_ms;
    Ok(rows_left < SWEEP_ROWS_MAX)
}

/// A delivery of which something has to be given back; all of it, when its consumer is gone.
type Ended = (DeliveryKey, Arc<DeliveryRecord>, bool);

/// The deliveries of which something has ended, and when the next lease of the others does.
fn find_ended(
    turn: &mut Turn<'_, '_>,
    number: GroupNumber,
) -> Result<(Vec<Ended>, Option<u64>), StoreError> {
    let now_ms = turn.now_ms();
    let consumers = turn.list::<Consumers>(&number, CONSUMERS_MAX as usize)?;
    let numbers: BTreeMap<ConsumerName, u32> = consumers
        .into_iter()
        .map(|((_, name), consumer)| (name, consumer.number))
        .collect();
    let mut ended = Vec::new();
    let mut next_ms = None;
    turn.visit::<Deliveries>(&number, |key, delivery| {
        let is_abandoned = numbers.get(&key.1) != Some(&delivery.consumer);
        let earliest_ms = delivery
            .records
            .iter()
            .map(|record| record.expires_at_ms)
            .min();
        if is_abandoned || earliest_ms.is_some_and(|due_ms| due_ms <= now_ms) {
            ended.push((key, delivery, is_abandoned));
        } else {
            next_ms = earliest_ms.into_iter().chain(next_ms).min();
        }
        ControlFlow::Continue(())
    })?;
    Ok((ended, next_ms))
}

/// Whether some of the records that wait may go out again, and when the next of the others may.
fn look_at_waiting(
    turn: &Turn<'_, '_>,
    (number, group): &Numbered,
    is_ready: &mut bool,
) -> Result<Option<u64>, StoreError> {
    let now_ms = turn.now_ms();
    let mut next_ms: Option<u64> = None;
    let mut look = |waiting: &RedeliveryRecord| {
        if waiting.due_ms <= now_ms {
            *is_ready = true;
            return ControlFlow::Continue(());
        }
        next_ms = Some(next_ms.map_or(waiting.due_ms, |next_ms| next_ms.min(waiting.due_ms)));
        ControlFlow::Break(())
    };
    if group.waiting_count() == 0 {
        return Ok(None);
    }
    if !group.keeps_order() {
        turn.visit::<Redeliveries>(number, |_, waiting| look(&waiting))?;
        return Ok(next_ms);
    }
    // The first one of a partition that is not due keeps the later ones back.
    for (partition, own) in (0_u64..).zip(&group.partitions) {
        if own.waiting_count > 0 {
            turn.visit::<Redeliveries>(&(*number, partition), |_, waiting| look(&waiting))?;
        }
    }
    Ok(next_ms)
}
