//! Deleting a consumer group (A31).

use super::{NumberedGroup, announce, arm, find};
use crate::ids::{GroupNumber, GroupRef, Namespace, StreamNumber};
use crate::limits::{GROUPS_MAX, SWEEP_ROWS_MAX};
use crate::rejection::Rejection;
use crate::reply::Deleted;
use crate::store::StoreError;
use crate::stream;
use crate::tables::{Consumers, Deliveries, GroupNames, Groups, Redeliveries, Streams, Table};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Deletes a group with its position and its records in flight. Its name is free immediately. Deleting a missing group
/// succeeds; the reply says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteGroup {
    /// The group.
    pub group: GroupRef,
}

impl DeleteGroup {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<Deleted> {
        let (number, mut stream) = stream::require(turn, namespace, &self.group.stream)?;
        let Some(target) = find(turn, number, &self.group.group)? else {
            return Ok(Deleted { is_found: false });
        };
        if target.1.trigger.is_some() {
            return Err(Rejection::GroupOwnedByTrigger(self.group.clone()).into());
        }
        stream.group_count -= 1;
        announce(turn, &target.1)?;
        abandon(turn, target)?;
        turn.put::<Streams>(&number, stream);
        Ok(Deleted { is_found: true })
    }
}

/// Deletes all groups of a stream that is being deleted.
pub(crate) fn delete_all(turn: &mut Turn<'_, '_>, stream: StreamNumber) -> Result<(), StoreError> {
    for (_, number) in turn.list::<GroupNames>(&stream, usize::MAX)? {
        let group = turn.get::<Groups>(&number)?;
        let group = group.expect("a name is deleted before its group");
        abandon(turn, (*number, Arc::unwrap_or_clone(group)))?;
    }
    Ok(())
}

/// Deletes the group of a stream that its trigger has left the longest ago; false if there is no such group. The caller
/// updates the stream's number of groups.
pub(super) fn delete_left(
    turn: &mut Turn<'_, '_>,
    stream: StreamNumber,
) -> Result<bool, StoreError> {
    let mut oldest: Option<(u64, NumberedGroup)> = None;
    for (_, number) in turn.list::<GroupNames>(&stream, GROUPS_MAX as usize)? {
        let group = turn.get::<Groups>(&number)?;
        let group = group.expect("a name is deleted before its group");
        let Some(left_at_ms) = group.left_at_ms else {
            continue;
        };
        let is_older = |(oldest_ms, target): &(u64, NumberedGroup)| {
            (left_at_ms, *number) < (*oldest_ms, target.0)
        };
        if oldest.as_ref().is_none_or(is_older) {
            oldest = Some((left_at_ms, (*number, Arc::unwrap_or_clone(group))));
        }
    }
    let Some((_, target)) = oldest else {
        return Ok(false);
    };
    abandon(turn, target)?;
    Ok(true)
}

/// Frees the group's name and leaves its rows to the timer.
fn abandon(turn: &mut Turn<'_, '_>, mut target: NumberedGroup) -> Result<(), StoreError> {
    turn.delete::<GroupNames>(&(target.1.stream, target.1.name.clone()));
    target.1.is_deleted = true;
    let now_ms = turn.now_ms();
    arm(turn, &mut target, now_ms);
    turn.put::<Groups>(&target.0, target.1);
    Ok(())
}

/// Deletes a batch of a deleted group's rows, and with the last batch the group.
pub(super) fn sweep(turn: &mut Turn<'_, '_>, mut target: NumberedGroup) -> Result<(), StoreError> {
    let number = target.0;
    let mut rows_left = SWEEP_ROWS_MAX;
    clear::<Deliveries>(turn, number, &mut rows_left)?;
    clear::<Redeliveries>(turn, number, &mut rows_left)?;
    clear::<Consumers>(turn, number, &mut rows_left)?;
    if rows_left > 0 {
        turn.delete::<Groups>(&number);
        return Ok(());
    }
    let now_ms = turn.now_ms();
    arm(turn, &mut target, now_ms);
    turn.put::<Groups>(&number, target.1);
    Ok(())
}

fn clear<T: Table>(
    turn: &mut Turn<'_, '_>,
    number: GroupNumber,
    rows_left: &mut usize,
) -> Result<(), StoreError> {
    for (key, _) in turn.list::<T>(&number, *rows_left)? {
        turn.delete::<T>(&key);
        *rows_left -= 1;
    }
    Ok(())
}
