//! Due rows of triggers: when a trigger has records to fire.

use crate::definition::{Trigger, TriggerIndex};
use crate::effect::Effect;
use crate::ids::{Namespace, WorkflowName};
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{
    DefinitionNumber, Definitions, GroupPartition, GroupRecord, Groups, LiveTrigger,
    PartitionRecord, Records, StreamRecord, Streams, Table, TriggersDue, Workflows,
};
use crate::turn::Turn;

/// Whose trigger, and which.
pub type TriggerKey = (Namespace, WorkflowName, TriggerIndex);

/// Updates the due row of a trigger after a change to its stream, its group or its workflow.
pub(super) fn rearm(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &mut LiveTrigger,
) -> Result<(), StoreError> {
    let due_ms =
        find_due(turn, key, live)?.map(|due_ms| due_ms.max(live.waits_until_ms.unwrap_or(0)));
    if due_ms == live.due_ms {
        return Ok(());
    }
    disarm(turn, key, live);
    live.due_ms = due_ms;
    if let Some(due_ms) = due_ms {
        turn.put::<TriggersDue>(&due_row(due_ms, key), ());
        turn.effect(Effect::ArmTrigger { due_ms });
    }
    Ok(())
}

/// Takes the trigger out of the due ones.
pub(super) fn disarm(turn: &mut Turn<'_, '_>, key: &TriggerKey, live: &mut LiveTrigger) {
    if let Some(due_ms) = live.due_ms.take() {
        turn.delete::<TriggersDue>(&due_row(due_ms, key));
    }
}

/// The key of the row of a trigger that is due.
fn due_row(due_ms: u64, key: &TriggerKey) -> <TriggersDue as Table>::Key {
    let (namespace, workflow, index) = key.clone();
    (due_ms, namespace, workflow, index)
}

/// The trigger, as the live revision defines it.
///
/// # Panics
/// If the revision has no such trigger: only those of the revision are live.
pub(super) fn block(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
    index: TriggerIndex,
) -> Result<Trigger, StoreError> {
    let record = turn.get::<Definitions>(&definition)?;
    let record = record.expect("a definition is kept as long as anything refers to it");
    let trigger = record.definition.trigger(index).cloned();
    Ok(trigger.expect("a live trigger is one of its definition"))
}

/// From when on there is something to fire, in milliseconds: from the past where a partition has a
/// whole batch, else when the oldest record has waited for long enough; `None` for nothing.
fn find_due(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &mut LiveTrigger,
) -> Result<Option<u64>, StoreError> {
    let Some(number) = live.group else {
        return Ok(None);
    };
    let workflow = turn.get::<Workflows>(&(key.0.clone(), key.1.clone()))?;
    let is_enabled = workflow.is_some_and(|workflow| workflow.is_enabled);
    if !is_enabled || turn.is_trigger_quarantined(live.definition) {
        return Ok(None);
    }
    let group = turn.get::<Groups>(&number)?;
    let group = group.expect("a live trigger's group is not deleted");
    let stream = turn.get::<Streams>(&group.stream)?;
    let stream = stream.expect("a group is deleted before its stream");
    if group.lag(&stream) == 0 {
        return Ok(None);
    }
    let trigger = block(turn, live.definition, key.2)?;
    let whole_ms = whole_since_ms(&trigger, &group, &stream);
    if whole_ms.is_some() {
        return Ok(whole_ms);
    }
    let first = find_first(turn, &group, &stream, live)?;
    Ok(first.map(|first| first.ms.saturating_add(trigger.batch_timeout_ms)))
}

/// The oldest record that the group has not read, over all partitions. What is found is noted, so that
/// a stream that grows is not searched again.
fn find_first(
    turn: &Turn<'_, '_>,
    group: &GroupRecord,
    stream: &StreamRecord,
    live: &mut LiveTrigger,
) -> Result<Option<RecordId>, StoreError> {
    let mut all = Vec::with_capacity(stream.partitions.len());
    for (partition, (own, found)) in (0..).zip(group.partitions.iter().zip(&stream.partitions)) {
        let place = Unread {
            own,
            found,
            noted: live.first_found(partition),
        };
        all.push(place.first(|from| {
            let rows = (group.stream, partition);
            let first = turn.first_key_from::<Records>(&rows, &(rows.0, rows.1, from))?;
            Ok(first.map(|(_, _, id)| id))
        })?);
    }
    live.first_found = all;
    Ok(live.first_found.iter().flatten().min().copied())
}

/// The time since which a partition has had a full batch, in milliseconds; `None` if no partition
/// has one. Approximated by the time of the group's position, which needs no lookup.
fn whole_since_ms(trigger: &Trigger, group: &GroupRecord, stream: &StreamRecord) -> Option<u64> {
    let places = group.partitions.iter().zip(&stream.partitions);
    let whole = places.filter(|(own, found)| own.lag(found) >= u64::from(trigger.batch_size));
    let times = whole.filter_map(|(own, found)| Some(own.next.max(found.front?).ms));
    times.min()
}

/// What a trigger's group has not read of a partition.
pub(crate) struct Unread<'a> {
    pub(crate) own: &'a GroupPartition,
    pub(crate) found: &'a PartitionRecord,
    /// What was found first the last time.
    pub(crate) noted: Option<RecordId>,
}

impl Unread<'_> {
    /// The first record; `first_from` looks for it where it is not known.
    pub(crate) fn first(
        &self,
        first_from: impl FnOnce(RecordId) -> Result<Option<RecordId>, StoreError>,
    ) -> Result<Option<RecordId>, StoreError> {
        let next = self.own.next;
        if self.own.lag(self.found) == 0 {
            return Ok(None);
        }
        match (self.found.front, self.noted) {
            (Some(front), _) if next <= front => Ok(Some(front)),
            // Records go from the front on, which lies before the cursor: so it is there.
            (Some(_), Some(noted)) if next <= noted => Ok(Some(noted)),
            (Some(_), _) => first_from(next),
            (None, _) => Ok(None),
        }
    }
}
