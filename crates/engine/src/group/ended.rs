//! Returns records whose ack deadline has passed or whose consumer is gone, in bounded batches.
//!
//! A pass visits each delivery of the group once, in key order. Each firing of the timer does one batch of the pass,
//! and the group remembers where the next batch begins. A pass therefore visits each delivery once, however many
//! batches it takes. Deliveries that end behind the current position are found by the next pass.

use super::ack::keep;
use super::consumer::{self, Holder};
use super::redelivery::{Reason, is_last, return_record};
use super::{DeliveryKey, NumberedGroup};
use crate::ids::{GroupNumber, GroupRef};
use crate::limits::{CONSUMERS_MAX, READ_RECORDS_MAX, SWEEP_ROWS_MAX};
use crate::store::{KeyRange, StoreError};
use crate::stream;
use crate::tables::{
    Consumers, Deliveries, DeliveryPosition, DeliveryRecord, GroupRecord, encode_prefix, range_from,
};
use crate::turn::Turn;
use crate::worker::{self, Counts};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most records that one batch moves to the dead-letter stream: each may have 1 MiB.
const DEAD_LETTERS_PER_BATCH_MAX: usize = 16;

// Otherwise one delivery could exceed a batch.
const _: () = assert!(READ_RECORDS_MAX <= SWEEP_ROWS_MAX);

/// Whether a pass is in progress, or a new one is needed.
pub(super) fn is_wanted(group: &GroupRecord, now_ms: u64) -> bool {
    let first_ms = group.leases.keys().next();
    let is_any_over = first_ms.is_some_and(|expires_at_ms| *expires_at_ms <= now_ms);
    group.pass_from.is_some() || group.has_abandoned || is_any_over
}

/// Does one batch of the current pass, or begins a pass. True if a record was returned.
pub(super) fn return_batch(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
) -> Result<bool, StoreError> {
    let from = target.1.pass_from.take();
    if from.is_none() {
        target.1.has_abandoned = false;
    }
    let batch = read_batch(turn, target, from)?;
    target.1.pass_from = batch.next;
    let mut burials_left = DEAD_LETTERS_PER_BATCH_MAX;
    let mut is_any_given_back = false;
    for held in batch.deliveries {
        let place = (held.key.1.clone(), held.key.2);
        let (ended_count, is_whole) = end(turn, target, held, &mut burials_left)?;
        is_any_given_back |= ended_count > 0;
        if !is_whole {
            target.1.pass_from = Some(place);
            break;
        }
    }
    if target.1.pass_from.is_none() && !target.1.has_abandoned {
        target.1.left.clear();
    }
    Ok(is_any_given_back)
}

/// The state of the process that holds records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HolderState {
    /// It is the current process of the consumer.
    Here,
    /// It left voluntarily.
    Left,
    /// It expired or was replaced by another process.
    Gone,
}

impl HolderState {
    /// Why its records return.
    fn reason(self) -> Reason {
        match self {
            Self::Here | Self::Gone => Reason::Expired,
            Self::Left => Reason::Left,
        }
    }
}

/// A delivery that a pass visits.
struct Held {
    key: DeliveryKey,
    delivery: Arc<DeliveryRecord>,
    state: HolderState,
}

/// The deliveries of one batch, and where the next batch begins.
struct Batch {
    deliveries: Vec<Held>,
    next: Option<DeliveryPosition>,
}

/// Reads as many deliveries as one batch may return or move to the dead-letter stream.
fn read_batch(
    turn: &mut Turn<'_, '_>,
    (number, group): &NumberedGroup,
    from: Option<DeliveryPosition>,
) -> Result<Batch, StoreError> {
    let now_ms = turn.now_ms();
    let consumers = turn.list::<Consumers>(number, CONSUMERS_MAX as usize)?;
    let numbers: BTreeSet<u32> = consumers.iter().map(|(_, one)| one.number).collect();
    let (mut deliveries, mut next) = (Vec::new(), None);
    let (mut record_count, mut burials_count) = (0, 0);
    turn.visit_range::<Deliveries>(&range(*number, from), |key, delivery| {
        record_count += delivery.records.len();
        if record_count > SWEEP_ROWS_MAX || burials_count >= DEAD_LETTERS_PER_BATCH_MAX {
            next = Some((key.1, key.2));
            return ControlFlow::Break(());
        }
        let state = state_of(group, &numbers, delivery.consumer);
        let records = delivery.records.iter();
        let ended = records.filter(|one| state != HolderState::Here || one.expires_at_ms <= now_ms);
        burials_count += ended
            .filter(|one| is_last(group, one, state.reason()))
            .count();
        deliveries.push(Held {
            key,
            delivery,
            state,
        });
        ControlFlow::Continue(())
    })?;
    Ok(Batch { deliveries, next })
}

fn range(number: GroupNumber, from: Option<DeliveryPosition>) -> KeyRange {
    match from {
        Some((consumer, take)) => range_from::<Deliveries>(&number, &(number, consumer, take)),
        None => KeyRange::prefix(&encode_prefix::<Deliveries>(&number)),
    }
}

fn state_of(group: &GroupRecord, here: &BTreeSet<u32>, number: u32) -> HolderState {
    if here.contains(&number) {
        HolderState::Here
    } else if group.left.contains(&number) {
        HolderState::Left
    } else {
        HolderState::Gone
    }
}

/// Returns the ended records of a delivery: how many, and whether these were all.
fn end(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
    held: Held,
    burials_left: &mut usize,
) -> Result<(u64, bool), StoreError> {
    let Held {
        key,
        delivery,
        state,
    } = held;
    let now_ms = turn.now_ms();
    let is_here = state == HolderState::Here;
    let mut left = Vec::new();
    let mut ended_count = 0;
    let mut is_whole = true;
    for record in &delivery.records {
        let has_ended = !is_here || record.expires_at_ms <= now_ms;
        if !has_ended || *burials_left == 0 {
            is_whole &= !has_ended;
            left.push(*record);
            continue;
        }
        let is_dead_letter = return_record(turn, target, record, state.reason())?;
        *burials_left -= usize::from(is_dead_letter);
        ended_count += 1;
    }
    if ended_count > 0 {
        if is_here {
            let (name, number) = (&key.1, delivery.consumer);
            count_expired(turn, target, &Holder { name, number }, ended_count)?;
        }
        keep(turn, &key, delivery.consumer, left);
    }
    Ok((ended_count, is_whole))
}

/// Counts missed ack deadlines as failures of the consumer's worker (A20).
fn count_expired(
    turn: &mut Turn<'_, '_>,
    target: &NumberedGroup,
    holder: &Holder<'_>,
    count: u64,
) -> Result<(), StoreError> {
    let (number, group) = target;
    let stream = stream::load(turn, group.stream)?;
    let name = GroupRef {
        stream: stream.name.clone(),
        group: group.name.clone(),
    };
    if let Some(worker) = consumer::worker_of(turn, *number, holder)? {
        let worker = (&stream.namespace, &worker);
        let counts = Counts {
            completed: 0,
            failed: count,
        };
        worker::count_records(turn, worker, &name, counts)?;
    }
    Ok(())
}
