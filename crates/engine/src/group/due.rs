//! A group's timer: leases that have ended, consumers that are silent, delays that are over.
//!
//! One timer a group, not one a record: it is set for the earliest of all, and looks for itself what
//! has fallen due. What it looks through is bounded by the records that a group may have in flight.

use super::consumer::{self, Holder};
use super::give_back::{Reason, give_back};
use super::settle::keep;
use super::{DeliveryKey, GroupRef, Numbered, announce, arm, delete, waiting};
use crate::ids::GroupNumber;
use crate::limits::{CONSUMERS_MAX, SWEEP_ROWS_MAX};
use crate::store::StoreError;
use crate::stream;
use crate::tables::{Consumers, Deliveries, DeliveryRecord, GroupRecord, Groups};
use crate::turn::{Outcome, Turn};
use std::collections::BTreeSet;
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
    let leases_due_ms = |group: &GroupRecord| group.leases.keys().next().copied();
    let mut is_any_given_back = false;
    if target.1.has_abandoned || is_due(leases_due_ms(&target.1)) {
        is_any_given_back = end_leases(turn, &mut target)?;
    }
    let (is_any_ready, waiting_due_ms) = waiting::look(turn, &target)?;
    if is_any_given_back || is_any_ready {
        announce(turn, &target.1)?;
    }
    let dues = [
        waiting_due_ms,
        leases_due_ms(&target.1),
        target.1.has_abandoned.then_some(now_ms),
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
    let mut rows_left = SWEEP_ROWS_MAX;
    let mut burials_left = BURIALS_MAX;
    target.1.has_abandoned = false;
    for (key, delivery, holder) in find_ended(turn, target)? {
        let is_here = holder == HolderState::Here;
        let mut left = Vec::new();
        let mut expired_count = 0;
        for record in &delivery.records {
            let has_ended = !is_here || record.expires_at_ms <= now_ms;
            if !has_ended || rows_left == 0 || burials_left == 0 {
                left.push(*record);
                continue;
            }
            let is_buried = give_back(turn, target, record, holder.reason())?;
            rows_left -= 1;
            burials_left -= usize::from(is_buried);
            expired_count += u64::from(is_here);
        }
        if expired_count > 0 {
            let holder = Holder {
                name: &key.1,
                number: delivery.consumer,
            };
            count_expired(turn, target, (&holder, expired_count))?;
        }
        target.1.has_abandoned |= !is_here && !left.is_empty();
        if left.len() < delivery.records.len() {
            keep(turn, &key, (delivery.consumer, left));
        }
    }
    if !target.1.has_abandoned {
        target.1.left.clear();
    }
    Ok(rows_left < SWEEP_ROWS_MAX)
}

/// Counts records that a consumer did not settle in time as failures of its worker (A20).
fn count_expired(
    turn: &mut Turn<'_, '_>,
    (number, group): &Numbered,
    (holder, count): (&Holder<'_>, u64),
) -> Result<(), StoreError> {
    let stream = stream::load(turn, group.stream)?;
    let name = GroupRef {
        stream: stream.name.clone(),
        group: group.name.clone(),
    };
    consumer::count(
        turn,
        (&stream.namespace, *number),
        (&name, holder),
        (0, count),
    )
}

/// What became of the process that holds records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HolderState {
    /// It is the consumer that has joined.
    Here,
    /// It left of its own accord.
    Left,
    /// It was silent for too long, or another one has taken its name.
    Gone,
}

impl HolderState {
    /// Why its records come back.
    fn reason(self) -> Reason {
        match self {
            Self::Here | Self::Gone => Reason::Expired,
            Self::Left => Reason::Left,
        }
    }
}

/// A delivery of which something has to be given back; all of it, when its consumer is gone.
type Ended = (DeliveryKey, Arc<DeliveryRecord>, HolderState);

fn find_ended(
    turn: &mut Turn<'_, '_>,
    (number, group): &Numbered,
) -> Result<Vec<Ended>, StoreError> {
    let now_ms = turn.now_ms();
    let consumers = turn.list::<Consumers>(number, CONSUMERS_MAX as usize)?;
    let numbers: BTreeSet<u32> = consumers.iter().map(|(_, one)| one.number).collect();
    let mut ended = Vec::new();
    turn.visit::<Deliveries>(number, |key, delivery| {
        let holder = if numbers.contains(&delivery.consumer) {
            HolderState::Here
        } else if group.left.contains(&delivery.consumer) {
            HolderState::Left
        } else {
            HolderState::Gone
        };
        let mut records = delivery.records.iter();
        let is_ended = records.any(|record| record.expires_at_ms <= now_ms);
        if is_ended || holder != HolderState::Here {
            ended.push((key, delivery, holder));
        }
        ControlFlow::Continue(())
    })?;
    Ok(ended)
}
