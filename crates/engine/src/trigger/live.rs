//! Which triggers of a workflow are live, and whether they fire (W5, W42, W93).

use super::due::{TriggerKey, block, disarm, rearm};
use crate::definition::{Trigger, TriggerIndex};
use crate::group;
use crate::ids::{GroupName, GroupNumber, GroupRef, Namespace, StreamName, WorkflowName};
use crate::limits::{GROUPS_MAX, TRIGGERS_MAX};
use crate::quota::QuotaDimension;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::stream;
use crate::tables::{
    DefinitionNumber, LiveTrigger, Table, TriggerCounts, TriggerRecord, Triggers, TriggersByStream,
    Workflows,
};
use crate::turn::{Turn, TurnResult};
use crate::workflow::key_of;
use std::sync::Arc;

/// Whose triggers.
type Owner = (Namespace, WorkflowName);

/// What makes triggers of two revisions the same one: the namespace and name of its stream, and its group, which has its
/// position.
type Identity = (Namespace, StreamName, GroupName);

/// Makes the triggers of a new latest revision the live ones (W5). This happens in the entry of the create, so that no
/// record is lost between the old triggers and the new ones. A trigger that the old revision has too, wherever it stands
/// in the list, continues at its position, with its counts.
///
/// # Errors
/// [`Rejection::GroupInUse`] if a named group is in use, [`Rejection::GroupQuarantined`] if it is quarantined.
pub(crate) fn make_live(
    turn: &mut Turn<'_, '_>,
    owner: &Owner,
    definition: DefinitionNumber,
) -> TurnResult<()> {
    let old = all(turn, owner)?;
    let mut live = old.iter().map(|(_, record)| record.live.definition);
    if live.any(|live| live == definition) {
        return Ok(());
    }
    let mut known = Vec::with_capacity(old.len());
    for (key, record) in old {
        let trigger = block(turn, record.live.definition, key.2)?;
        known.push((identity_of(&key.0, &trigger), record.counts));
        leave(turn, &key, record.live, &trigger)?;
    }
    let latest = turn.pinned(definition)?;
    let mut entries: Vec<_> = (0..)
        .map(TriggerIndex)
        .zip(&latest.definition.triggers)
        .map(|(index, trigger)| {
            let identity = identity_of(&owner.0, trigger);
            let mut known = known.iter().filter(|(of, _)| *of == identity);
            (index, trigger, known.next().map(|(_, counts)| *counts))
        })
        .collect();
    // A group that a new trigger creates must not take the place of one that is only left for the moment.
    entries.sort_by_key(|(_, _, counts)| counts.is_none());
    for (index, trigger, counts) in entries {
        let key = (owner.0.clone(), owner.1.clone(), index);
        let mut live = LiveTrigger::new(definition);
        live.group = join(turn, &key, trigger)?;
        rearm(turn, &key, &mut live)?;
        let counts = counts.unwrap_or_else(|| TriggerCounts {
            since_ms: turn.now_ms(),
            ..TriggerCounts::default()
        });
        turn.put::<Triggers>(&key, TriggerRecord { live, counts });
        turn.note_use(&key.0, QuotaDimension::Triggers, 1);
    }
    Ok(())
}

/// Resumes or stops the triggers of an enabled or disabled workflow. Their streams keep records for them only while they
/// fire (W42, A32). Their cursors stay.
pub(crate) fn set_enabled(
    turn: &mut Turn<'_, '_>,
    owner: &Owner,
    is_enabled: bool,
) -> Result<(), StoreError> {
    for (key, mut record) in all(turn, owner)? {
        if let Some(group) = record.live.group {
            group::set_holding(turn, group, is_enabled)?;
        }
        let before = record.live.clone();
        rearm(turn, &key, &mut record.live)?;
        if record.live != before {
            turn.put::<Triggers>(&key, record);
        }
    }
    Ok(())
}

/// Ends the triggers of a workflow that is deleted. Their groups are left, as by a revision without triggers.
pub(crate) fn delete(turn: &mut Turn<'_, '_>, owner: &Owner) -> TurnResult<()> {
    for (key, record) in all(turn, owner)? {
        let trigger = block(turn, record.live.definition, key.2)?;
        leave(turn, &key, record.live, &trigger)?;
    }
    Ok(())
}

/// Stops the triggers of a quarantined revision. Their streams still keep the records that they have not consumed (design
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

/// Resumes the triggers of a released revision at their cursors, if they are still live.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> Result<(), StoreError> {
    change_live(turn, definition, rearm)
}

/// Changes the triggers of a revision, if they are live.
fn change_live(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
    mut change: impl FnMut(&mut Turn<'_, '_>, &TriggerKey, &mut LiveTrigger) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let Some(owner) = key_of(turn, definition)? else {
        return Ok(());
    };
    for (key, mut record) in all(turn, &owner)? {
        if record.live.definition == definition {
            change(turn, &key, &mut record.live)?;
            turn.put::<Triggers>(&key, record);
        }
    }
    Ok(())
}

/// The live triggers of a workflow, in the order of its list.
fn all(turn: &Turn<'_, '_>, owner: &Owner) -> Result<Vec<(TriggerKey, TriggerRecord)>, StoreError> {
    let rows = turn.list::<Triggers>(owner, TRIGGERS_MAX)?.into_iter();
    Ok(rows
        .map(|(key, record)| (key, Arc::unwrap_or_clone(record)))
        .collect())
}

/// How many triggers of a workflow are live.
pub(crate) fn count(turn: &Turn<'_, '_>, owner: &Owner) -> Result<u64, StoreError> {
    Ok(all(turn, owner)?.len() as u64)
}

/// A live trigger; `None` if there is none, or not yet.
pub(super) fn find(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
) -> Result<Option<TriggerRecord>, StoreError> {
    let record = turn.get::<Triggers>(key)?;
    Ok(record.map(Arc::unwrap_or_clone))
}

/// Lets a trigger read a stream that has appeared.
pub(super) fn attach(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &mut LiveTrigger,
) -> TurnResult<()> {
    let trigger = block(turn, live.definition, key.2)?;
    live.group = claim(turn, key, &trigger)?;
    Ok(rearm(turn, key, live)?)
}

/// An old trigger leaves its stream; how far its group has read is kept.
fn leave(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    mut old: LiveTrigger,
    trigger: &Trigger,
) -> TurnResult<()> {
    disarm(turn, key, &mut old);
    turn.note_use(&key.0, QuotaDimension::Triggers, -1);
    turn.delete::<Triggers>(key);
    turn.delete::<TriggersByStream>(&row_of(key, trigger));
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
    let source = (trigger.namespace(&key.0).clone(), trigger.stream.clone());
    let others = turn.list::<TriggersByStream>(&source, GROUPS_MAX as usize)?;
    if others.len() == GROUPS_MAX as usize {
        return Err(Rejection::too_many("triggers of a stream", GROUPS_MAX as usize).into());
    }
    for ((_, _, namespace, workflow, index), _) in others {
        let Some(record) = find(turn, &(namespace, workflow, index))? else {
            continue;
        };
        let other = block(turn, record.live.definition, index)?;
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
    let Some(source) = stream::find(turn, trigger.namespace(&key.0), &trigger.stream)? else {
        return Ok(None);
    };
    let owner = (key.0.clone(), key.1.clone());
    let workflow = turn.get::<Workflows>(&owner)?;
    let claim = group::Claim {
        group: group_of(trigger),
        mode: trigger.consumption,
        is_holding: workflow.is_some_and(|workflow| workflow.is_enabled),
        workflow: owner,
    };
    group::claim(turn, source, claim).map(Some)
}

fn group_of(trigger: &Trigger) -> GroupRef {
    GroupRef {
        stream: trigger.stream.clone(),
        group: trigger.consumer_group.clone(),
    }
}

fn identity_of(own: &Namespace, trigger: &Trigger) -> Identity {
    let namespace = trigger.namespace(own).clone();
    (
        namespace,
        trigger.stream.clone(),
        trigger.consumer_group.clone(),
    )
}

/// The row that says whose trigger waits for which stream.
fn row_of(key: &TriggerKey, trigger: &Trigger) -> <TriggersByStream as Table>::Key {
    let (namespace, workflow, index) = key.clone();
    let of_stream = trigger.namespace(&namespace).clone();
    let stream = trigger.stream.clone();
    (of_stream, stream, namespace, workflow, index)
}
