//! A group whose timer failed is set aside (design rule 10).
//!
//! Without its timer no lease would end, so nobody takes records of it, joins it or settles anything:
//! each is told why. It is left as it is, to be looked at, until it is deleted.

use super::{GroupRef, Numbered};
use crate::effect::Effect;
use crate::ids::GroupNumber;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{Groups, Streams};
use crate::turn::Turn;
use std::sync::Arc;

/// Notes that the group's timer is gone, and wakes those who wait for records.
pub(crate) fn set_aside(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
    let Some(group) = turn.get::<Groups>(&number)? else {
        return Ok(());
    };
    // Nothing is taken for granted here: this turn runs after a panic, and must not be the next.
    if let Some(stream) = turn.get::<Streams>(&group.stream)? {
        turn.effect(Effect::RecordsReady {
            namespace: stream.namespace.clone(),
            stream: stream.name.clone(),
            group: group.name.clone(),
        });
    }
    let mut group = Arc::unwrap_or_clone(group);
    // A deletion sets it again.
    group.timer_due_ms = None;
    turn.put::<Groups>(&number, group);
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
