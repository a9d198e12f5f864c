//! Which consumer the records of a partition go to, in the modes that keep order.
//!
//! Under exclusive it is the consumer that joined first; the others stand by. Under key_shared the
//! partitions are dealt out in the order of joining, so that each has about as many. A partition
//! changes hands only when nothing of it is in flight.

use super::{Numbered, announce};
use crate::definition::Consumption;
use crate::limits::CONSUMERS_MAX;
use crate::store::StoreError;
use crate::tables::Consumers;
use crate::turn::Turn;

/// Deals the partitions out anew, after a consumer came or went.
pub(super) fn reassign(
    turn: &mut Turn<'_, '_>,
    (number, group): &mut Numbered,
) -> Result<(), StoreError> {
    if !group.keeps_order() {
        return Ok(());
    }
    let consumers = turn.list::<Consumers>(number, CONSUMERS_MAX as usize)?;
    let mut numbers: Vec<u32> = consumers.iter().map(|(_, one)| one.number).collect();
    numbers.sort_unstable();
    let mut dealt = numbers.iter().copied().cycle();
    for partition in &mut group.partitions {
        partition.assigned = match group.settings.mode() {
            Consumption::Shared => None,
            Consumption::Exclusive => numbers.first().copied(),
            Consumption::KeyShared => dealt.next(),
        };
    }
    announce(turn, group)
}
