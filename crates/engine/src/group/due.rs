//! The timer of a group: missed ack deadlines, expired consumers and elapsed redelivery delays.
//!
//! Each group has one timer, set for the earliest of these times; records have none. When it fires, the group looks for
//! everything that is due, bounded by the number of records that a group may have in flight.

use super::{NumberedGroup, announce, arm, consumer, delete, ended, waiting};
use crate::ids::GroupNumber;
use crate::store::StoreError;
use crate::tables::Groups;
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// The group's timer fires.
pub(crate) fn fire_timer(turn: &mut Turn<'_, '_>, number: GroupNumber) -> TurnResult<()> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    let mut target = (number, Arc::unwrap_or_clone(group));
    target.1.timer_due_ms = None;
    if target.1.is_deleted {
        return Ok(delete::sweep(turn, target)?);
    }
    let now_ms = turn.now_ms();
    if target
        .1
        .silence_due_ms
        .is_some_and(|due_ms| due_ms <= now_ms)
    {
        consumer::remove_expired(turn, &mut target)?;
    }
    let mut is_any_ready = false;
    if ended::is_wanted(&target.1, now_ms) {
        is_any_ready = ended::return_batch(turn, &mut target)?;
    }
    let next_ms = if ended::is_wanted(&target.1, now_ms) {
        // Waiting records are checked once nothing else can be added to them.
        Some(now_ms)
    } else {
        let (is_any_due, next_ms) = find_next_due(turn, &target)?;
        is_any_ready |= is_any_due;
        next_ms
    };
    if is_any_ready {
        announce(turn, &target.1)?;
    }
    if let Some(due_ms) = next_ms {
        arm(turn, &mut target, due_ms);
    }
    turn.put::<Groups>(&number, target.1);
    Ok(())
}

/// Whether waiting records may be redelivered, and when the next one is due.
fn find_next_due(
    turn: &Turn<'_, '_>,
    target: &NumberedGroup,
) -> Result<(bool, Option<u64>), StoreError> {
    let (is_any_due, waiting_due_ms) = waiting::find_due(turn, target)?;
    let group = &target.1;
    let lease_due_ms = group.leases.keys().next().copied();
    let dues = [waiting_due_ms, lease_due_ms, group.silence_due_ms];
    Ok((is_any_due, dues.into_iter().flatten().min()))
}
