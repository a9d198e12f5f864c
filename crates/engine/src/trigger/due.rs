//! The row of a trigger that has records to fire.

use crate::definition::Trigger;
use crate::effect::Effect;
use crate::ids::{Namespace, StreamNumber, WorkflowName};
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{
    DefinitionNumber, Definitions, GroupPartition, GroupRecord, Groups, LiveTrigger,
    PartitionRecord, Records, StreamRecord, Streams, TriggersDue, Workflows,
};
use crate::turn::Turn;
use std::ops::ControlFlow;

/// Whose trigger.
pub(super) type TriggerKey = (Namespace, WorkflowName);

/// Brings the row of a trigger in step with its stream, its group and its workflow.
pub(super) fn rearm(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &mut LiveTrigger,
) -> Result<(), StoreError> {
    let due_ms = find_due(turn, key, live)?;
    if due_ms == live.due_ms {
        return Ok(());
    }
    disarm(turn, key, live);
    live.due_ms = due_ms;
    if let Some(due_ms) = due_ms {
        turn.put::<TriggersDue>(&(due_ms, key.0.clone(), key.1.clone()), ());
        turn.effect(Effect::ArmTrigger { due_ms });
    }
    Ok(())
}

/// Takes the trigger out of the due ones.
pub(super) fn disarm(turn: &mut Turn<'_, '_>, key: &TriggerKey, live: &mut LiveTrigger) {
    if let Some(due_ms) = live.due_ms.take() {
        turn.delete::<TriggersDue>(&(due_ms, key.0.clone(), key.1.clone()));
    }
}

/// What the live revision says of its trigger.
///
/// # Panics
/// When it says nothing: only a revision with a trigger is live.
pub(super) fn block(
    turn: &mut Turn<'_, '_>,
    definition: DefinitionNumber,
) -> Result<Trigger, StoreError> {
    let record = turn.get::<Definitions>(&definition)?;
    let record = record.expect("a definition is kept as long as anything refers to it");
    let trigger = record.definition.trigger.clone();
    Ok(trigger.expect("the live trigger is that of its definition"))
}

/// From when on there is something to fire, in milliseconds: from the past where a partition has a
/// whole batch, else when the oldest record has waited for long enough; `None` for nothing.
fn find_due(
    turn: &mut Turn<'_, '_>,
    key: &TriggerKey,
    live: &LiveTrigger,
) -> Result<Option<u64>, StoreError> {
    let Some(number) = live.group else {
        return Ok(None);
    };
    let workflow = turn.get::<Workflows>(key)?;
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
    let trigger = block(turn, live.definition)?;
    let whole_ms = whole_since_ms(&trigger, (&group, &stream));
    if whole_ms.is_some() {
        return Ok(whole_ms);
    }
    let mut due_ms: Option<u64> = None;
    for (partition, pair) in (0..).zip(group.partitions.iter().zip(&stream.partitions)) {
        let first = first_pending(pair, |from| {
            first_from(turn, (group.stream, partition), from)
        })?;
        if let Some(first) = first {
            let flush_ms = first.ms.saturating_add(trigger.batch_timeout_ms);
            due_ms = Some(due_ms.map_or(flush_ms, |due_ms| due_ms.min(flush_ms)));
        }
    }
    Ok(due_ms)
}

/// Since when a partition has a whole batch, in milliseconds; `None` when none has. The time of the
/// place from which the group reads it, which is known without looking, stands for that.
fn whole_since_ms(
    trigger: &Trigger,
    (group, stream): (&GroupRecord, &StreamRecord),
) -> Option<u64> {
    let places = group.partitions.iter().zip(&stream.partitions);
    let whole = places.filter(|(own, found)| own.lag(found) >= u64::from(trigger.batch_size));
    let times = whole.filter_map(|(own, found)| Some(own.next.max(found.front?).ms));
    times.min()
}

/// The first record of a partition that its group has not read.
pub(crate) fn first_pending(
    (own, found): (&GroupPartition, &PartitionRecord),
    first_from: impl Fn(RecordId) -> Result<Option<RecordId>, StoreError>,
) -> Result<Option<RecordId>, StoreError> {
    if own.lag(found) == 0 {
        return Ok(None);
    }
    match found.front {
        Some(front) if own.next <= front => Ok(Some(front)),
        Some(_) => first_from(own.next),
        None => Ok(None),
    }
}

fn first_from(
    turn: &Turn<'_, '_>,
    (stream, partition): (StreamNumber, u32),
    from: RecordId,
) -> Result<Option<RecordId>, StoreError> {
    let place = (stream, partition, from);
    let mut first = None;
    turn.visit_from::<Records>(&(stream, partition), &place, |(_, _, id), _| {
        first = Some(id);
        ControlFlow::Break(())
    })?;
    Ok(first)
}
