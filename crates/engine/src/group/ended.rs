//! Records whose lease has ended or whose consumer is gone come back, in bounded pieces.
//!
//! A pass looks at each delivery of the group once, in the order of their keys. One firing of the timer
//! makes a piece of it, and the group remembers where the next one goes on: so a pass costs each
//! delivery one look, however many pieces it takes. What ends behind a pass is found by the next.

use super::consumer::{self, Holder};
use super::give_back::{Reason, give_back, is_last};
use super::settle::keep;
use super::{DeliveryKey, GroupRef, Numbered};
use crate::ids::GroupNumber;
use crate::limits::{CONSUMERS_MAX, READ_RECORDS_MAX, SWEEP_ROWS_MAX};
use crate::store::{KeyRange, StoreError};
use crate::stream;
use crate::tables::{
    Consumers, Deliveries, DeliveryPlace, DeliveryRecord, GroupRecord, encode_prefix, range_from,
};
use crate::turn::Turn;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Records that one piece moves to the dead-letter stream at most: each may be of 1 MiB.
const BURIALS_MAX: usize = 16;

// Otherwise one delivery could be too much for a piece.
const _: () = assert!(READ_RECORDS_MAX <= SWEEP_ROWS_MAX);

/// Whether a pass is under way, or there is reason to begin one.
pub(super) fn is_wanted(group: &GroupRecord, now_ms: u64) -> bool {
    let first_ms = group.leases.keys().next();
    let is_any_over = first_ms.is_some_and(|expires_at_ms| *expires_at_ms <= now_ms);
    group.pass_from.is_some() || group.has_abandoned || is_any_over
}

/// Makes a piece of a pass, of the one that is under way or of a new one. True when something was
/// given back.
pub(super) fn give_back_piece(
    turn: &mut Turn<'_, '_>,
    target: &mut Numbered,
) -> Result<bool, StoreError> {
    let from = target.1.pass_from.take();
    if from.is_none() {
        target.1.has_abandoned = false;
    }
    let piece = read_piece(turn, target, from)?;
    target.1.pass_from = piece.next;
    let mut burials_left = BURIALS_MAX;
    let mut is_any_given_back = false;
    for held in piece.deliveries {
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

/// A delivery that a pass looks at.
struct Held {
    key: DeliveryKey,
    delivery: Arc<DeliveryRecord>,
    state: HolderState,
}

/// The deliveries that a piece looks at, and where the next one goes on.
struct Piece {
    deliveries: Vec<Held>,
    next: Option<DeliveryPlace>,
}

/// Reads as many deliveries as one piece may give back and bury.
fn read_piece(
    turn: &mut Turn<'_, '_>,
    (number, group): &Numbered,
    from: Option<DeliveryPlace>,
) -> Result<Piece, StoreError> {
    let now_ms = turn.now_ms();
    let consumers = turn.list::<Consumers>(number, CONSUMERS_MAX as usize)?;
    let numbers: BTreeSet<u32> = consumers.iter().map(|(_, one)| one.number).collect();
    let (mut deliveries, mut next) = (Vec::new(), None);
    let (mut records_count, mut burials_count) = (0, 0);
    turn.visit_range::<Deliveries>(&range(*number, from), |key, delivery| {
        records_count += delivery.records.len();
        if records_count > SWEEP_ROWS_MAX || burials_count >= BURIALS_MAX {
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
    Ok(Piece { deliveries, next })
}

fn range(number: GroupNumber, from: Option<DeliveryPlace>) -> KeyRange {
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

/// Gives back what has ended of a delivery: how much that was, and whether it was all.
fn end(
    turn: &mut Turn<'_, '_>,
    target: &mut Numbered,
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
        let is_buried = give_back(turn, target, record, state.reason())?;
        *burials_left -= usize::from(is_buried);
        ended_count += 1;
    }
    if ended_count > 0 {
        if is_here {
            let (name, number) = (&key.1, delivery.consumer);
            count_expired(turn, target, (&Holder { name, number }, ended_count))?;
        }
        keep(turn, &key, (delivery.consumer, left));
    }
    Ok((ended_count, is_whole))
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
    let owner = (&stream.namespace, *number);
    consumer::count(turn, owner, (&name, holder), (0, count))
}
