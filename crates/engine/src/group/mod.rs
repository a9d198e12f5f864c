//! Consumer groups: who reads which records of a stream, at least once (A31).
//!
//! A take gives records to a consumer for a time. It acknowledges them, or they go out again: because
//! it gave them back, because the time is over, or because it is gone. A record that went out too
//! often goes to the group's dead-letter stream.

mod assign;
mod choose;
mod consumer;
mod create;
mod delete;
mod due;
mod ended;
mod give_back;
mod lease;
mod own;
mod set_aside;
mod settings;
mod settle;
mod take;
mod touch;
mod waiting;

pub use consumer::{JoinGroup, LeaveGroup};
pub use create::{CreateGroup, NewGroup};
pub use delete::DeleteGroup;
pub use settings::{AckTimeoutInvalid, GroupSettings};
pub use settle::{AckRecords, NackRecords};
pub use take::{TakeId, TakeRecords};
pub use touch::TouchRecords;

pub(crate) use delete::delete_all;
pub(crate) use due::fall_due;
pub(crate) use give_back::bury;
pub(crate) use own::{Claim, check_name, claim, load, release, set_holding};
pub(crate) use set_aside::{set_aside, take_up};
pub(crate) use waiting::{orders as waiting_orders, range as waiting_range};

use crate::effect::Effect;
use crate::ids::{ConsumerName, GroupName, GroupNumber, Namespace, StreamName, StreamNumber};
use crate::limits::NAME_BYTES_MAX;
use crate::rejection::{Rejection, check_bytes};
use crate::store::StoreError;
use crate::stream;
use crate::stream::RecordId;
use crate::tables::{GroupNames, GroupPartition, GroupRecord, Groups, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use set_aside::check_in_service;
use std::sync::Arc;

/// Names a group of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRef {
    /// The stream.
    pub stream: StreamName,
    /// The group.
    pub group: GroupName,
}

/// A group and its number.
pub(crate) type Numbered = (GroupNumber, GroupRecord);

/// Names what one take gave to a consumer.
type DeliveryKey = (GroupNumber, ConsumerName, TakeId);

/// The group that is named and in service, or a refusal.
fn require(turn: &mut Turn<'_, '_>, namespace: &Namespace, name: &GroupRef) -> Outcome<Numbered> {
    let stream = stream::require_number(turn, namespace, &name.stream)?;
    let found = find(turn, stream, &name.group)?;
    let found = found.ok_or_else(|| Rejection::GroupNotFound(name.clone()))?;
    check_in_service(turn, &found, name)?;
    Ok(found)
}

fn find(
    turn: &mut Turn<'_, '_>,
    stream: StreamNumber,
    name: &GroupName,
) -> Result<Option<Numbered>, StoreError> {
    let number = turn.get::<GroupNames>(&(stream, name.clone()))?;
    let Some(number) = number.map(|number| *number) else {
        return Ok(None);
    };
    let group = turn.get::<Groups>(&number)?;
    let group = group.expect("a name is deleted before its group");
    Ok(Some((number, Arc::unwrap_or_clone(group))))
}

/// What the group knows of a partition.
fn partition_of(group: &mut GroupRecord, partition: u32) -> &mut GroupPartition {
    let position = usize::try_from(partition).expect("a partition is a place in a list");
    &mut group.partitions[position]
}

/// Notes that a record of a partition is behind the group, with those before it that are gone.
pub(crate) fn pass(group: &mut GroupRecord, partition: u32, (id, position): (RecordId, u64)) {
    let own = partition_of(group, partition);
    let skipped_count = position - own.passed_count - 1;
    own.next = id.next();
    own.passed_count = position;
    group.lost_count += skipped_count;
}

/// The stream that takes what a group could not process: `<stream>.<group>.dlq`.
fn dead_letter_name(stream: &StreamName, group: &GroupName) -> Result<StreamName, Rejection> {
    let text = format!("{stream}.{group}.dlq");
    let noun = "the name of the group's dead-letter stream";
    check_bytes(noun, text.len(), NAME_BYTES_MAX)?;
    Ok(StreamName::new(text).expect("two names joined by dots are a name unless it is too long"))
}

/// Has the group look at `due_ms` what has fallen due.
fn arm(turn: &mut Turn<'_, '_>, (number, group): &mut Numbered, due_ms: u64) {
    let timer = TimerKey {
        kind: TimerKind::GroupDue,
        due_ms,
        subject: number.0,
        detail: 0,
    };
    timer::bring_forward(turn, &mut group.timer_due_ms, timer);
}

/// Tells those who wait for records of the group to look again.
fn announce(turn: &mut Turn<'_, '_>, group: &GroupRecord) -> Result<(), StoreError> {
    let stream = stream::load(turn, group.stream)?;
    turn.effect(Effect::RecordsReady {
        namespace: stream.namespace.clone(),
        stream: stream.name.clone(),
        group: group.name.clone(),
    });
    Ok(())
}

/// From which record on retention has to keep each partition of a stream: triggers that hold it have
/// not read further (A32). Nothing is in flight there: a firing settles what it reads.
pub(crate) fn holds(
    turn: &mut Turn<'_, '_>,
    stream: StreamNumber,
    partitions_count: usize,
) -> Result<Vec<RecordId>, StoreError> {
    let mut holds = vec![RecordId::END; partitions_count];
    for (_, number) in turn.list::<GroupNames>(&stream, usize::MAX)? {
        let group = turn.get::<Groups>(&number)?;
        let Some(group) = group.filter(|group| group.holds_retention()) else {
            continue;
        };
        for (hold, partition) in holds.iter_mut().zip(&group.partitions) {
            *hold = partition.next.min(*hold);
        }
    }
    Ok(holds)
}
