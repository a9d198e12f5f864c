//! The groups of triggers (W41): read by the trigger alone, without consumers and leases.

use super::create::{NewGroup, open};
use super::set_aside::check_in_service;
use super::{GroupRef, GroupSettings, Numbered, dead_letter_name, find};
use crate::definition::Consumption;
use crate::ids::{GroupNumber, Namespace, WorkflowName};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::stream::{self, RecordId, StreamPosition};
use crate::tables::{GroupTrigger, Groups, Streams};
use crate::turn::{Outcome, Turn};
use std::sync::Arc;

/// What a trigger wants of its group.
pub(crate) struct Claim {
    pub(crate) group: GroupRef,
    pub(crate) mode: Consumption,
    /// Whether the stream keeps what the trigger has not read (A32).
    pub(crate) is_holding: bool,
    /// Whose trigger.
    pub(crate) trigger: (Namespace, WorkflowName),
}

/// Makes a group a trigger's own. A new one begins where the stream does, one that is there goes on.
///
/// # Errors
/// [`Rejection::GroupTaken`] when it has consumers, records that are not settled, or another trigger;
/// [`Rejection::GroupQuarantined`] when it is set aside.
pub(crate) fn claim(
    turn: &mut Turn<'_, '_>,
    source: stream::Numbered,
    claim: Claim,
) -> Outcome<GroupNumber> {
    let found = find(turn, source.0, &claim.group.group)?;
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
            open(turn, source, &claim.group.group, &new)?
        }
    };
    let is_read = group.consumers_count > 0 || group.pending_count() > 0;
    if is_read || group.trigger.is_some() {
        return Err(Rejection::GroupTaken(claim.group).into());
    }
    group.settings = group.settings.with_mode(claim.mode);
    group.trigger = Some(GroupTrigger {
        workflow: claim.trigger,
        holds_retention: false,
    });
    turn.put::<Groups>(&number, group);
    set_holding(turn, number, claim.is_holding)?;
    Ok(number)
}

/// Leaves a group to whoever wants to read on with it.
pub(crate) fn release(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<(), StoreError> {
    set_holding(turn, number, false)?;
    let (_, mut group) = load(turn, number)?;
    group.trigger = None;
    turn.put::<Groups>(&number, group);
    Ok(())
}

/// Says whether the stream keeps what the group's trigger has not read (A32).
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
/// When it is not there: a trigger forgets its group when the stream is deleted.
pub(crate) fn load(turn: &mut Turn<'_, '_>, number: GroupNumber) -> Result<Numbered, StoreError> {
    let group = turn.get::<Groups>(&number)?;
    let group = group.expect("a trigger's group is kept as long as its stream");
    Ok((number, Arc::unwrap_or_clone(group)))
}

/// Refuses a group whose dead-letter stream would have no valid name.
pub(crate) fn check_name(group: &GroupRef) -> Result<(), Rejection> {
    dead_letter_name(&group.stream, &group.group).map(drop)
}
