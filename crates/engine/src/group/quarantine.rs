//! Quarantine of a group whose timer failed (design rule 10).
//!
//! Without its timer no lease would end, so takes, joins, acks and nacks are rejected with the reason. The group's
//! state stays available for inspection until the group is deleted or released.

use super::{NumberedGroup, arm};
use crate::effect::Effect;
use crate::ids::{GroupNumber, GroupRef};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{GroupRecord, Groups, Streams};
use crate::turn::Turn;
use std::sync::Arc;

/// Records that the group's timer is gone, and wakes the consumers that wait for records.
pub(crate) fn quarantine(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    wake(turn, &group)?;
    let mut group = Arc::unwrap_or_clone(group);
    // A deletion sets the timer again.
    group.timer_due_ms = None;
    turn.put::<Groups>(&number, group);
    Ok(())
}

/// Releases the group: its timer immediately looks for what is due.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    number: GroupNumber,
) -> Result<(), StoreError> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    wake(turn, &group)?;
    let mut target = (number, Arc::unwrap_or_clone(group));
    let now_ms = turn.now_ms();
    arm(turn, &mut target, now_ms);
    turn.put::<Groups>(&number, target.1);
    Ok(())
}

/// Wakes the consumers that wait for records of the group. It assumes nothing about the state: the turn after a panic
/// must not panic itself.
fn wake(turn: &mut Turn<'_, '_>, group: &GroupRecord) -> Result<(), StoreError> {
    if let Some(stream) = turn.get::<Streams>(&group.stream)? {
        turn.effect(Effect::RecordsReady {
            namespace: stream.namespace.clone(),
            stream: stream.name.clone(),
            group: group.name.clone(),
        });
    }
    Ok(())
}

/// Rejects a quarantined group.
pub(super) fn check_in_service(
    turn: &Turn<'_, '_>,
    (number, _): &NumberedGroup,
    name: &GroupRef,
) -> Result<(), Rejection> {
    if turn.is_group_quarantined(*number) {
        return Err(Rejection::GroupQuarantined(name.clone()));
    }
    Ok(())
}
