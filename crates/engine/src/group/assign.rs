//! Assignment of partitions to consumers, in the modes that keep order.
//!
//! In `exclusive` mode, the consumer that joined first gets all partitions, and the others stand by. In `key_shared`
//! mode, the partitions are spread evenly over the consumers, in the order of joining. A partition changes hands only
//! when none of its records is in flight.

use super::{NumberedGroup, announce};
use crate::definition::GroupMode;
use crate::limits::CONSUMERS_MAX;
use crate::store::StoreError;
use crate::tables::Consumers;
use crate::turn::Turn;

/// Reassigns the partitions after a consumer joined or left.
pub(super) fn reassign(
    turn: &mut Turn<'_, '_>,
    (number, group): &mut NumberedGroup,
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
            GroupMode::Shared => None,
            GroupMode::Exclusive => numbers.first().copied(),
            GroupMode::KeyShared => dealt.next(),
        };
    }
    announce(turn, group)
}
