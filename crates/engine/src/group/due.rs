//! A group's timer: leases that have ended, consumers that are silent, delays that are over.
//!
//! One timer a group, not one a record: it is set for the earliest of all, and looks for itself what
//! has fallen due. What it looks through is bounded by the records that a group may have in flight.

use super::{Numbered, announce, arm, consumer, delete, ended, waiting};
use crate::ids::GroupNumber;
use crate::store::StoreError;
use crate::tables::Groups;
use crate::turn::{Outcome, Turn};
use std::sync::Arc;

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
    if target
        .1
        .silence_due_ms
        .is_some_and(|due_ms| due_ms <= now_ms)
    {
        consumer::remove_silent(turn, &mut target)?;
    }
    let mut is_any_ready = false;
    if ended::is_wanted(&target.1, now_ms) {
        is_any_ready = ended::give_back_piece(turn, &mut target)?;
    }
    let next_ms = if ended::is_wanted(&target.1, now_ms) {
        // What waits is looked through when nothing comes to it any more.
        Some(now_ms)
    } else {
        let (is_any_due, next_ms) = look_ahead(turn, &target)?;
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

/// Whether records that wait may go out again, and when something falls due next.
fn look_ahead(turn: &Turn<'_, '_>, target: &Numbered) -> Result<(bool, Option<u64>), StoreError> {
    let (is_any_due, waiting_due_ms) = waiting::look(turn, target)?;
    let group = &target.1;
    let lease_due_ms = group.leases.keys().next().copied();
    let dues = [waiting_due_ms, lease_due_ms, group.silence_due_ms];
    Ok((is_any_due, dues.into_iter().flatten().min()))
}
