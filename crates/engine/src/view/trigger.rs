//! Reads triggers, for callers and for the leader's driver (W41).

use super::due::DueCursor;
use super::is_quarantined;
use super::page::PageBudget;
use super::trigger_firing::{ReadRecord, TriggerFiring};
use crate::definition::{Trigger, TriggerIndex};
use crate::ids::{Namespace, StreamNumber, WorkflowName, WorkflowVersion};
use crate::limits::{READ_RECORDS_MAX, TRIGGER_RUNS_MAX, TRIGGERS_MAX};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::stream::RecordId;
use crate::tables::{
    DefinitionRecord, Definitions, GroupRecord, Groups, LiveTrigger, QuarantinedKind, Records,
    StreamRecord, Streams, TriggerCounts, TriggerRecord, Triggers, TriggersDue, Workflows,
    decode_key, range_from, read, visit,
};
use crate::trigger::{TriggerKey, Unread};
use std::ops::ControlFlow;

/// A trigger of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerView {
    /// What the latest revision says.
    pub trigger: Trigger,
    /// The latest revision's version.
    pub version: WorkflowVersion,
    /// The latest revision.
    pub revision: u32,
    /// Whether it fires.
    pub state: TriggerState,
    /// Records of the stream that it has not read.
    pub lag: u64,
    /// Records that the stream removed before it read them.
    pub lost_count: u64,
    /// What it has done.
    pub counts: TriggerCounts,
}

/// Whether a trigger fires, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerState {
    /// It fires.
    Active,
    /// Its stream does not exist yet.
    NoStream,
    /// Its workflow is disabled (W42).
    Disabled,
    /// It is quarantined (design rule 10).
    Quarantined,
    /// It waits because a quota does not allow another run (X39).
    Quota,
}

impl TriggerState {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::NoStream => "no_stream",
            Self::Disabled => "disabled",
            Self::Quarantined => "quarantined",
            Self::Quota => "quota",
        }
    }
}

/// The triggers of a workflow's latest revision, in the order of its list.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn triggers(
    reader: &dyn Reader,
    namespace: &Namespace,
    workflow: &WorkflowName,
) -> Result<Vec<TriggerView>, StoreError> {
    let owner = (namespace.clone(), workflow.clone());
    let Some(record) = read::<Workflows>(reader, &owner)? else {
        return Ok(Vec::new());
    };
    let mut views = Vec::new();
    for index in (0..).take(TRIGGERS_MAX).map(TriggerIndex) {
        let key = (owner.0.clone(), owner.1.clone(), index);
        match Live::find(reader, &key)? {
            Some(found) => views.push(describe(reader, found, record.is_enabled)?),
            None => break,
        }
    }
    Ok(views)
}

fn describe(reader: &dyn Reader, found: Live, is_enabled: bool) -> Result<TriggerView, StoreError> {
    let source = found.source(reader)?;
    let quarantined = (QuarantinedKind::Trigger, found.live.definition.0);
    let state = if is_quarantined(reader, quarantined)? {
        TriggerState::Quarantined
    } else if !is_enabled {
        TriggerState::Disabled
    } else if source.is_none() {
        TriggerState::NoStream
    } else if found.live.is_over_quota {
        TriggerState::Quota
    } else {
        TriggerState::Active
    };
    let of_source = source.map(|(group, stream)| (group.lag(&stream), group.lost_count));
    let (lag, lost_count) = of_source.unwrap_or_default();
    Ok(TriggerView {
        trigger: found.trigger,
        version: found.definition.definition.version,
        revision: found.definition.revision,
        state,
        lag,
        lost_count,
        counts: found.counts,
    })
}

/// Triggers that the driver must look at, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueTriggers {
    /// Those that are due, by the age of what they have to fire.
    pub triggers: Vec<TriggerKey>,
    /// When the next one that is not among them will be due, in milliseconds.
    pub next_due_ms: Option<u64>,
}

impl DueCursor {
    /// The triggers that are due at `now_ms`, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn due_triggers(
        &mut self,
        reader: &dyn Reader,
        now_ms: u64,
        limit: usize,
    ) -> Result<DueTriggers, StoreError> {
        let (triggers, next_due_ms) = self.read::<TriggersDue, _>(reader, now_ms, limit)?;
        Ok(DueTriggers {
            triggers,
            next_due_ms,
        })
    }
}

/// What a trigger has to fire at `now_ms`: at most one firing for each partition of its stream, and
/// at most `limit`, those first whose records have waited the longest.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn trigger_firings(
    reader: &dyn Reader,
    key: &TriggerKey,
    now_ms: u64,
    limit: usize,
) -> Result<Vec<TriggerFiring>, StoreError> {
    let Some(found) = Live::find(reader, key)?.filter(|found| found.live.due_ms.is_some()) else {
        return Ok(Vec::new());
    };
    let Some((group, stream)) = found.source(reader)? else {
        return Ok(Vec::new());
    };
    let mut due: Vec<(RecordId, u32)> = Vec::new();
    for (partition, (own, place)) in (0..).zip(group.partitions.iter().zip(&stream.partitions)) {
        let unread = Unread {
            own,
            found: place,
            noted: found.live.first_found(partition),
        };
        let first = unread.first(|from| first_from(reader, (group.stream, partition, from)))?;
        let is_whole = own.lag(place) >= u64::from(found.trigger.batch_size);
        let is_due = |first: &RecordId| {
            is_whole || first.ms.saturating_add(found.trigger.batch_timeout_ms) <= now_ms
        };
        due.extend(first.filter(is_due).map(|first| (first, partition)));
    }
    due.sort_unstable();
    let mut firings = Vec::new();
    for (first, partition) in due.into_iter().take(limit) {
        let place = (group.stream, partition, first);
        let (records, has_more) = records(reader, place, &found.trigger)?;
        firings.push(TriggerFiring {
            namespace: key.0.clone(),
            workflow: key.1.clone(),
            definition: found.live.definition,
            index: key.2,
            schema: found.definition.definition.input_schema.clone(),
            trigger: found.trigger.clone(),
            partition,
            cursor: group.partition(partition).map_or(first, |own| own.next),
            records,
            has_more,
            now_ms,
        });
    }
    Ok(firings)
}

/// A live trigger with its revision.
struct Live {
    live: LiveTrigger,
    counts: TriggerCounts,
    definition: DefinitionRecord,
    trigger: Trigger,
}

impl Live {
    fn find(reader: &dyn Reader, key: &TriggerKey) -> Result<Option<Self>, StoreError> {
        let Some(TriggerRecord { live, counts }) = read::<Triggers>(reader, key)? else {
            return Ok(None);
        };
        let Some(definition) = read::<Definitions>(reader, &live.definition)? else {
            return Ok(None);
        };
        let trigger = definition.definition.trigger(key.2).cloned();
        Ok(trigger.map(|trigger| Self {
            live,
            counts,
            definition,
            trigger,
        }))
    }

    /// The group and the stream that it reads, if the stream is there.
    fn source(
        &self,
        reader: &dyn Reader,
    ) -> Result<Option<(GroupRecord, StreamRecord)>, StoreError> {
        let Some(number) = self.live.group else {
            return Ok(None);
        };
        let Some(group) = read::<Groups>(reader, &number)? else {
            return Ok(None);
        };
        let stream = read::<Streams>(reader, &group.stream)?;
        Ok(stream.map(|stream| (group, stream)))
    }
}

/// The place of a record, as its table has it.
type RecordPosition = (StreamNumber, u32, RecordId);

/// The payloads that one firing may take, and whether others lie behind them.
fn records(
    reader: &dyn Reader,
    place: RecordPosition,
    trigger: &Trigger,
) -> Result<(Vec<ReadRecord>, bool), StoreError> {
    let size = usize::try_from(trigger.batch_size).unwrap_or(usize::MAX);
    // With a condition, most batches may start no run.
    let batches_max = match trigger.when {
        Some(_) => READ_RECORDS_MAX,
        None => TRIGGER_RUNS_MAX,
    };
    let count_max = size.saturating_mul(batches_max).min(READ_RECORDS_MAX);
    let mut records = Vec::new();
    let mut has_more = false;
    let mut budget = PageBudget::new(count_max);
    let range = from(&place);
    visit::<Records>(reader, &range, Order::Ascending, |(_, _, id), content| {
        has_more = !budget.take(content.size());
        if has_more {
            return ControlFlow::Break(());
        }
        records.push(ReadRecord { id, content });
        ControlFlow::Continue(())
    })?;
    Ok((records, has_more))
}

fn first_from(reader: &dyn Reader, place: RecordPosition) -> Result<Option<RecordId>, StoreError> {
    let mut first = None;
    reader.scan(&from(&place), Order::Ascending, &mut |key, _| {
        first = decode_key::<Records>(key).map(|(_, _, id)| id);
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// The records of a partition from a place on.
fn from(place: &RecordPosition) -> KeyRange {
    range_from::<Records>(&(place.0, place.1), place)
}
