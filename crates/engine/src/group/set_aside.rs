//! A group whose timer failed is set aside (design rule 10).
//!
//! Without its timer no lease would end, so nobody takes records of it, joins it or settles anything:
//! each is told why. It is left as it is, to be looked at, until it is deleted or taken up again.

use super::{GroupRef, Numbered, arm};
use crate::effect::Effect;
use crate::ids::GroupNumber;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{GroupRecord, Groups, Streams};
use crate::turn::Turn;
use std::sync::Arc;

/// Notes that the group's timer is gone, and wakes those who wait for records.
pub(crate) fn set_aside(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    wake(turn, &group)?;
    let mut group = Arc::unwrap_or_clone(group);
    // A deletion sets it again.
    group.timer_due_ms = None;
    turn.put::<Groups>(&number, group);
    Ok(())
}

/// The group is taken up: its timer looks at once what has fallen due.
pub(crate) fn take_up(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
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

/// Tells those who wait for records of the group to look again. Nothing is taken for granted here: a turn
/// that runs after a panic must not be the next.
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

/// Refuses a group that is set aside.
pub(super) fn check_in_service(
    turn: &Turn<'_, '_>,
    (number, _): &Numbered,
    name: &GroupRef,
) -> Result<(), Rejection> {
    if turn.is_group_quarantined(*number) {
        return Err(Rejection::GroupQuarantined(name.clone()));
    }
    Ok(())
}
