//! Consumer groups: shared, at-least-once consumption of a stream (A31).
//!
//! A take delivers records to a consumer for a limited time. The consumer acks them. Otherwise they are redelivered:
//! after a nack, a missed ack deadline, or the end of the consumer. After too many deliveries, a record goes to the
//! group's dead-letter stream.

mod ack;
mod assign;
mod choose;
mod consumer;
mod create;
mod delete;
mod due;
mod ended;
mod lease;
mod own;
mod quarantine;
mod redelivery;
mod take;
mod touch;
mod waiting;

pub use ack::{AckRecords, NackRecords};
pub use consumer::{JoinGroup, LeaveGroup};
pub use create::{CreateGroup, NewGroup};
pub use delete::DeleteGroup;
pub use take::TakeRecords;
pub use touch::TouchRecords;

pub(crate) use delete::delete_all;
pub(crate) use due::fire_timer;
pub(crate) use own::{Claim, check_name, claim, load, release, set_holding};
pub(crate) use quarantine::{quarantine, release_from_quarantine};
pub(crate) use redelivery::{DeadRecord, move_to_dead_letters};
pub(crate) use waiting::{orders as waiting_orders, range as waiting_range};

use crate::effect::Effect;
use crate::ids::{
    ConsumerName, GroupName, GroupNumber, GroupRef, Namespace, StreamName, StreamNumber, TakeId,
};
use crate::limits::NAME_BYTES_MAX;
use crate::rejection::{Rejection, check_bytes};
use crate::store::StoreError;
use crate::stream;
use crate::stream::RecordId;
use crate::tables::{GroupNames, GroupPartition, GroupRecord, Groups, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Turn, TurnResult};
use quarantine::check_in_service;
use std::sync::Arc;

/// A group and its number.
pub(crate) type NumberedGroup = (GroupNumber, GroupRecord);

/// Names the delivery of one take.
type DeliveryKey = (GroupNumber, ConsumerName, TakeId);

/// The named group; rejected if it is missing or quarantined.
fn require(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    name: &GroupRef,
) -> TurnResult<NumberedGroup> {
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
) -> Result<Option<NumberedGroup>, StoreError> {
    let number = turn.get::<GroupNames>(&(stream, name.clone()))?;
    let Some(number) = number.map(|number| *number) else {
        return Ok(None);
    };
    let group = turn.get::<Groups>(&number)?;
    let group = group.expect("a name is deleted before its group");
    Ok(Some((number, Arc::unwrap_or_clone(group))))
}

/// The group's state for a partition.
fn partition_of(group: &mut GroupRecord, partition: u32) -> &mut GroupPartition {
    let position = usize::try_from(partition).expect("a partition is a place in a list");
    &mut group.partitions[position]
}

/// Moves the group's position past a record of a partition and any removed records before it.
pub(crate) fn pass(group: &mut GroupRecord, partition: u32, id: RecordId, position: u64) {
    let own = partition_of(group, partition);
    let skipped_count = position - own.passed_count - 1;
    own.next = id.next();
    own.passed_count = position;
    group.lost_count += skipped_count;
}

/// The name of a group's dead-letter stream: `<stream>.<group>.dlq`.
fn dead_letter_name(stream: &StreamName, group: &GroupName) -> Result<StreamName, Rejection> {
    let text = format!("{stream}.{group}.dlq");
    let noun = "the name of the group's dead-letter stream";
    check_bytes(noun, text.len(), NAME_BYTES_MAX)?;
    Ok(StreamName::new(text).expect("two names joined by dots are a name unless it is too long"))
}

/// Sets the group's timer for `due_ms`.
fn arm(turn: &mut Turn<'_, '_>, (number, group): &mut NumberedGroup, due_ms: u64) {
    let timer = TimerKey {
        kind: TimerKind::GroupDue,
        due_ms,
        subject: number.0,
        detail: 0,
    };
    timer::bring_forward(turn, &mut group.timer_due_ms, timer);
}

/// Wakes the consumers that wait for records of the group.
fn announce(turn: &mut Turn<'_, '_>, group: &GroupRecord) -> Result<(), StoreError> {
    let stream = stream::load(turn, group.stream)?;
    turn.effect(Effect::RecordsReady {
        namespace: stream.namespace.clone(),
        stream: stream.name.clone(),
        group: group.name.clone(),
    });
    Ok(())
}

/// The first record of each partition that retention must keep, because a trigger has not consumed it (A32). Triggers
/// have no records in flight: a firing consumes what it reads.
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
