//! The consumer groups of triggers (W41): used by the trigger alone, without consumers and leases.

use super::create::{NewGroup, create};
use super::quarantine::check_in_service;
use super::{NumberedGroup, dead_letter_name, find};
use crate::definition::GroupMode;
use crate::ids::{GroupNumber, GroupRef, Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::stream::{self, RecordId, StreamPosition};
use crate::tables::{GroupSettings, GroupTrigger, Groups, Streams};
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// What a trigger requires of its group.
pub(crate) struct Claim {
    pub(crate) group: GroupRef,
    pub(crate) mode: GroupMode,
    /// Whether the stream keeps the records that the trigger has not consumed (A32).
    pub(crate) is_holding: bool,
    /// The trigger's workflow.
    pub(crate) workflow: (Namespace, WorkflowName),
}

/// Dedicates a group to a trigger. A new group begins at the start of the stream; an existing one keeps its position.
///
/// # Errors
/// [`Rejection::GroupInUse`] if the group has consumers, unacknowledged records or another trigger;
/// [`Rejection::GroupQuarantined`] if it is quarantined.
pub(crate) fn claim(
    turn: &mut Turn<'_, '_>,
    source: stream::NumberedStream,
    claim: Claim,
) -> TurnResult<GroupNumber> {
    let found = find(turn, source.0, &claim.group.group)?;
    let is_new = found.is_none();
    let (number, mut group) = match found {
        Some(found) => {
            check_in_service(turn, &found, &claim.group)?;
            found
        }
        None => {
            let new = NewGroup {
                settings: GroupSettings::default(),
                start: StreamPosition::Id(RecordId::START),
            };
            create(turn, source, &claim.group.group, &new)?
        }
    };
    let is_read = group.consumer_count > 0 || group.pending_count() > 0;
    if is_read || group.trigger.is_some() {
        return Err(Rejection::GroupInUse(claim.group).into());
    }
    let was_left = group.left_at_ms.take().is_some();
    group.settings = group.settings.with_mode(claim.mode);
    group.trigger = Some(GroupTrigger {
        workflow: claim.workflow,
        is_creator: is_new || was_left,
        holds_retention: false,
    });
    turn.put::<Groups>(&number, group);
    set_holding(turn, number, claim.is_holding)?;
    Ok(number)
}

/// Detaches a group from its trigger, so that consumers can use it. It keeps its position, so that the trigger of an
/// earlier revision can continue there.
pub(crate) fn release(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
    set_holding(turn, number, false)?;
    let (_, mut group) = load(turn, number)?;
    let trigger = group.trigger.take();
    let is_creator = trigger.is_some_and(|trigger| trigger.is_creator);
    group.left_at_ms = is_creator.then_some(turn.now_ms());
    turn.put::<Groups>(&number, group);
    Ok(())
}

/// Sets whether the stream keeps the records that the group's trigger has not consumed (A32).
pub(crate) fn set_holding(
    turn: &mut Turn<'_, '_>,
    number: GroupNumber,
    is_holding: bool,
) -> Result<(), StoreError> {
    let (_, mut group) = load(turn, number)?;
    let trigger = group.trigger.as_mut();
    let Some(trigger) = trigger.filter(|trigger| trigger.holds_retention != is_holding) else {
        return Ok(());
    };
    trigger.holds_retention = is_holding;
    let stream_number = group.stream;
    turn.put::<Groups>(&number, group);
    let mut stream = Arc::unwrap_or_clone(stream::load(turn, stream_number)?);
    if is_holding {
        stream.holds_count += 1;
    } else {
        stream.holds_count -= 1;
    }
    turn.put::<Streams>(&stream_number, stream);
    stream::hold_moved(turn, stream_number)
}

/// The group `number`, to be changed and put back.
///
/// # Panics
/// If it does not exist: a trigger drops its group when the stream is deleted.
pub(crate) fn load(
    turn: &mut Turn<'_, '_>,
    number: GroupNumber,
) -> Result<NumberedGroup, StoreError> {
    let group = turn.get::<Groups>(&number)?;
    let group = group.expect("a trigger's group is kept as long as its stream");
    Ok((number, Arc::unwrap_or_clone(group)))
}

/// Rejects a group whose dead-letter stream would have an invalid name.
pub(crate) fn check_name(group: &GroupRef) -> Result<(), Rejection> {
    dead_letter_name(&group.stream, &group.group).map(drop)
}
