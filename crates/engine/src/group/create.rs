//! Creating a consumer group (A31).

use super::delete::delete_left;
use super::quarantine::check_in_service;
use super::{NumberedGroup, dead_letter_name, find};
use crate::ids::{GroupName, GroupNumber, GroupRef, Namespace};
use crate::limits::GROUPS_MAX;
use crate::rejection::Rejection;
use crate::reply::GroupCreated;
use crate::store::StoreError;
use crate::stream::{self, NumberedStream, RecordId, StreamPosition};
use crate::tables::{
    GroupNames, GroupPartition, GroupRecord, GroupSettings, Groups, Records, Streams,
};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Creates a consumer group of an existing stream. An existing group with the same settings keeps its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateGroup {
    /// The group.
    pub group: GroupRef,
    /// The settings of the new group.
    pub new: NewGroup,
}

/// The settings of a new group and its start position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewGroup {
    /// Its settings.
    pub settings: GroupSettings,
    /// The first record that it reads.
    pub start: StreamPosition,
}

impl CreateGroup {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<GroupCreated> {
        let source = stream::require(turn, namespace, &self.group.stream)?;
        let Some(mut found) = find(turn, source.0, &self.group.group)? else {
            let (number, group) = create(turn, source, &self.group.group, &self.new)?;
            turn.put::<Groups>(&number, group);
            return Ok(GroupCreated { is_new: true });
        };
        check_in_service(turn, &found, &self.group)?;
        let differences = found.1.settings.differences(&self.new.settings);
        if !differences.is_empty() {
            let group = self.group.clone();
            return Err(Rejection::GroupExists { group, differences }.into());
        }
        if found.1.left_at_ms.take().is_some() {
            turn.put::<Groups>(&found.0, found.1);
        }
        Ok(GroupCreated { is_new: false })
    }
}

/// Makes a group record, which the caller stores.
pub(super) fn create(
    turn: &mut Turn<'_, '_>,
    mut source: NumberedStream,
    name: &GroupName,
    new: &NewGroup,
) -> TurnResult<NumberedGroup> {
    dead_letter_name(&source.1.name, name)?;
    if source.1.group_count == GROUPS_MAX {
        if !delete_left(turn, source.0)? {
            return Err(Rejection::too_many("groups of a stream", GROUPS_MAX as usize).into());
        }
        source.1.group_count -= 1;
    }
    let mut partitions = Vec::with_capacity(source.1.partitions.len());
    for partition in (0..).take(source.1.partitions.len()) {
        partitions.push(begin(turn, &source, partition, new.start)?);
    }
    let (stream_number, mut stream) = source;
    let number = GroupNumber(turn.next_number(|cluster| &mut cluster.group_count));
    turn.put::<GroupNames>(&(stream_number, name.clone()), number);
    stream.group_count += 1;
    turn.put::<Streams>(&stream_number, stream);
    let group = GroupRecord {
        stream: stream_number,
        name: name.clone(),
        settings: new.settings,
        trigger: None,
        left_at_ms: None,
        partitions,
        next_partition: 0,
        consumer_count: 0,
        joins_count: 0,
        acked_count: 0,
        dead_count: 0,
        lost_count: 0,
        leases: BTreeMap::new(),
        has_abandoned: false,
        left: BTreeSet::new(),
        pass_from: None,
        waiting_from_ms: 0,
        silence_due_ms: None,
        timer_due_ms: None,
        is_deleted: false,
        created_at_ms: turn.now_ms(),
    };
    Ok((number, group))
}

/// The position at which a group begins to read a partition.
fn begin(
    turn: &Turn<'_, '_>,
    source: &NumberedStream,
    partition: u32,
    start: StreamPosition,
) -> Result<GroupPartition, StoreError> {
    let (number, stream) = source;
    let tail = stream.last_id.next();
    let next = match start {
        StreamPosition::Id(id) => id.min(tail),
        StreamPosition::Tail => tail,
    };
    let found = stream.partition(partition).copied().unwrap_or_default();
    let mut passed_count = found.appended_count;
    if next == RecordId::START {
        passed_count = found.removed_count();
    } else if next < tail {
        // After the removed records (design rule 4).
        let from = found.front.map_or(next, |front| front.max(next));
        let place = (*number, partition, from);
        turn.visit_from::<Records>(&(*number, partition), &place, |_, content| {
            passed_count = content.position - 1;
            ControlFlow::Break(())
        })?;
    }
    Ok(GroupPartition {
        next,
        passed_count,
        ..GroupPartition::default()
    })
}
