//! Which trigger of a workflow is live, and whether it fires (W5, W42).

use super::due::{TriggerKey, block, disarm, rearm};
use crate::definition::Trigger;
use crate::group;
use crate::ids::{GroupNumber, GroupRef, Namespace, StreamName, WorkflowName};
use crate::limits::GROUPS_MAX;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::stream;
use crate::tables::{
    DefinitionNumber, LiveTrigger, TriggerRecord, Triggers, TriggersByStream, Workflows,
};
use crate::turn::{Turn, TurnResult};
use crate::workflow::key_of;
use std::sync::Arc;

/// Makes a new latest revision's trigger the live one, if it has one (W5). This happens in the entry of the create, so
/// that no record is lost between the old trigger and the new one. A trigger with the same group continues at the old
/// cursor.
///
/// # Errors
/// [`Rejection::GroupInUse`] if the named group is in use, [`Rejection::GroupQuarantined`] if it is quarantined.
pub(crate) fn make_live(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    definition: DefinitionNumber,
) -> TurnResult<()> {
    let mut record = load(turn, key)?;
    let is_live = |live: &LiveTrigger| live.definition == definition;
    if record.live.as_ref().is_some_and(is_live) {
        return Ok(());
    }
    let latest = turn.pinned(definition)?;
    let trigger = latest.definition.trigger.as_ref();
    if record.live.is_none() && trigger.is_none() {
        return Ok(());
    }
    if let Some(old) = record.live.take() {
        leave(turn, key, old)?;
    }
    if let Some(trigger) = trigger {
        let mut live = LiveTrigger::new(definition);
        live.group = join(turn, key, trigger)?;
        rearm(turn, key, &mut live)?;
        record.live = Some(live);
    }
    turn.put::<Triggers>(key, record);
    Ok(())
}

/// Resumes or stops the trigger of an enabled or disabled workflow. The stream keeps records for it only while it fires
/// (W42, A32). Its cursor stays.
pub(crate) fn set_enabled(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    is_enabled: bool,
) -> Result<(), StoreError> {
    let mut record = load(turn, key)?;
    let Some(mut live) = record.live.clone() else {
        return Ok(());
    };
    if let Some(group) = live.group {
        group::set_holding(turn, group, is_enabled)?;
    }
    rearm(turn, key, &mut live)?;
    if record.live.as_ref() != Some(&live) {
        record.live = Some(live);
        turn.put::<Triggers>(key, record);
    }
    Ok(())
}

/// Ends the trigger of a workflow that is deleted. Its group is left, as by a revision without a trigger.
pub(crate) fn delete(turn: &mut Turn<'_, '_>, key: &TriggerKey) -> TurnResult<()> {
    if let Some(live) = load(turn, key)?.live {
        leave(turn, key, live)?;
    }
    turn.delete::<Triggers>(key);
    Ok(())
}

/// Stops the trigger of a quarantined revision. Its stream still keeps the records that it has not consumed (design
/// rule 10).
pub(crate) fn quarantine(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> Result<(), StoreError> {
    change_live(turn, definition, |turn, key, live| {
        disarm(turn, key, live);
        Ok(())
    })
}

/// Resumes the trigger of a released revision at its cursor, if it is still live.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> Result<(), StoreError> {
    change_live(turn, definition, rearm)
}

/// Changes the trigger of a revision, if it is the live one.
fn change_live(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
    change: impl FnOnce(&mut Turn<'_, '_>, &TriggerKey, &mut LiveTrigger) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let Some(key) = key_of(turn, definition)? else {
        return Ok(());
    };
    let mut record = load(turn, &key)?;
    match &mut record.live {
        Some(live) if live.definition == definition => {
            change(turn, &key, live)?;
            turn.put::<Triggers>(&key, record);
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// What is known of a workflow's trigger.
pub(super) fn load(turn: &mut Turn<'_, '_>, key: &TriggerKey) -> Result<TriggerRecord, StoreError> {
    let record = turn.get::<Triggers>(key)?;
    Ok(record.map(Arc::unwrap_or_clone).unwrap_or_default())
}

/// Lets a trigger read a stream that has appeared.
pub(super) fn attach(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &mut LiveTrigger,
) -> TurnResult<()> {
    let trigger = block(turn, live.definition)?;
    live.group = claim(turn, key, &trigger)?;
    Ok(rearm(turn, key, live)?)
}

/// The namespace of a trigger's stream.
fn namespace_of(key: &TriggerKey, trigger: &Trigger) -> Namespace {
    trigger.namespace.clone().unwrap_or_else(|| key.0.clone())
}

/// The old trigger leaves its stream; how far its group has read is kept.
fn leave(turn: &mut Turn<'_, '_>, key: &TriggerKey, mut old: LiveTrigger) -> TurnResult<()> {
    disarm(turn, key, &mut old);
    let trigger = block(turn, old.definition)?;
    turn.delete::<TriggersByStream>(&row_of(key, &trigger));
    if let Some(group) = old.group {
        group::release(turn, group)?;
    }
    Ok(())
}

/// The new trigger registers with its stream, and reads it if it is there.
fn join(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    trigger: &Trigger,
) -> TurnResult<Option<GroupNumber>> {
    let group = group_of(trigger);
    group::check_name(&group)?;
    let source = (namespace_of(key, trigger), trigger.stream.clone());
    let others = turn.list::<TriggersByStream>(&source, GROUPS_MAX as usize)?;
    if others.len() == GROUPS_MAX as usize {
        return Err(Rejection::too_many("triggers of a stream", GROUPS_MAX as usize).into());
    }
    for ((_, _, namespace, workflow), _) in others {
        let Some(live) = load(turn, &(namespace, workflow))?.live else {
            continue;
        };
        let other = block(turn, live.definition)?;
        if other.consumer_group == trigger.consumer_group {
            return Err(Rejection::GroupInUse(group).into());
        }
    }
    turn.put::<TriggersByStream>(&row_of(key, trigger), ());
    claim(turn, key, trigger)
}

/// Makes the group the trigger's own, if the stream is there.
fn claim(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    trigger: &Trigger,
) -> TurnResult<Option<GroupNumber>> {
    let namespace = namespace_of(key, trigger);
    let Some(source) = stream::find(turn, &namespace, &trigger.stream)? else {
        return Ok(None);
    };
    let workflow = turn.get::<Workflows>(key)?;
    let claim = group::Claim {
        group: group_of(trigger),
        mode: trigger.consumption,
        is_holding: workflow.is_some_and(|workflow| workflow.is_enabled),
        trigger: key.clone(),
    };
    group::claim(turn, source, claim).map(Some)
}

fn group_of(trigger: &Trigger) -> GroupRef {
    GroupRef {
        stream: trigger.stream.clone(),
        group: trigger.consumer_group.clone(),
    }
}

/// The row that says whose trigger waits for which stream.
fn row_of(key: &TriggerKey, trigger: &Trigger) -> (Namespace, StreamName, Namespace, WorkflowName) {
    let (namespace, workflow) = key.clone();
    let stream = trigger.stream.clone();
    (namespace_of(key, trigger), stream, namespace, workflow)
}
