//! Consumer groups (A31).
//!
//! A group stores its position in each partition. A record has its own rows only while it is in flight or waits for
//! redelivery.

use super::{Key, tables};
use crate::definition::GroupMode;
use crate::ids::{
    ConsumerName, GroupName, GroupNumber, Namespace, StreamNumber, TakeId, WorkerId, WorkflowName,
};
use crate::stream::RecordId;
use crate::tables::{GroupSettings, PartitionRecord, StreamRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

tables! {
    /// By number. Live until the group is deleted and its rows are swept.
    54 Groups(GroupNumber) -> GroupRecord, HOT;
    /// Groups by stream and name. Live until the group or its stream is deleted.
    55 GroupNames((StreamNumber, GroupName)) -> GroupNumber, HOT;
    /// By group and name. Live until they leave or expire.
    56 Consumers((GroupNumber, ConsumerName)) -> ConsumerRecord, HOT;
    /// Records in flight, by consumer and take. Live until each of them is acked or returned.
    57 Deliveries((GroupNumber, ConsumerName, TakeId)) -> DeliveryRecord, HOT;
    /// Returned records, by [`GroupRecord::rank`] and id. Live until they are redelivered or go to the dead-letter
    /// stream.
    58 Redeliveries((GroupNumber, u64, RecordId)) -> RedeliveryRecord;
}

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// The stream that it reads.
    pub stream: StreamNumber,
    /// Its name.
    pub name: GroupName,
    /// Its settings.
    pub settings: GroupSettings,
    /// The trigger that owns it; no other consumer may use it then (W41).
    pub trigger: Option<GroupTrigger>,
    /// When the trigger that created it left it, in milliseconds; `None` once it is used again. When the stream has its
    /// maximum of groups and needs another one, the group that was left the longest ago is deleted (W41).
    pub left_at_ms: Option<u64>,
    /// Its position in each partition of the stream.
    pub partitions: Vec<GroupPartition>,
    /// The partition from which the next take is filled, so that none is starved.
    pub next_partition: u32,
    /// Consumers that it has.
    pub consumer_count: u32,
    /// Consumers that ever joined: the number of the last one.
    pub joins_count: u32,
    /// Records that were acked.
    pub acked_count: u64,
    /// Records that went to the dead-letter stream.
    pub dead_count: u64,
    /// Records that the stream removed before they were acked, and dead letters for which no stream could be created.
    pub lost_count: u64,
    /// Records in flight, by the time in milliseconds at which their lease ends.
    pub leases: BTreeMap<u64, u32>,
    /// Whether consumers that are gone may have left records in flight.
    pub has_abandoned: bool,
    /// The numbers of those consumers that left voluntarily.
    pub left: BTreeSet<u32>,
    /// Where the current pass over ended deliveries continues; `None` if no pass is in progress.
    pub pass_from: Option<DeliveryPosition>,
    /// No waiting record is due before this time, in milliseconds.
    pub waiting_from_ms: u64,
    /// No consumer expires before this time, in milliseconds.
    pub silence_due_ms: Option<u64>,
    /// When its timer is due, in milliseconds.
    pub timer_due_ms: Option<u64>,
    /// Whether it is deleted: it has no name, and its rows are being swept.
    pub is_deleted: bool,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
}

/// The trigger that a group belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTrigger {
    /// Whose trigger.
    pub workflow: (Namespace, WorkflowName),
    /// Whether the group was created for a trigger, and not by a caller.
    pub is_creator: bool,
    /// Whether retention keeps the records that it has not consumed (A32); true while it is enabled.
    pub holds_retention: bool,
}

/// A group's position in one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPartition {
    /// The next record to deliver is the first one at or after this id.
    pub next: RecordId,
    /// The position in the partition of the last delivered record.
    pub passed_count: u64,
    /// Records in flight.
    pub in_flight_count: u32,
    /// Records that wait for redelivery.
    pub waiting_count: u32,
    /// No waiting record has a smaller id, in the modes that keep order.
    pub waiting_from: RecordId,
    /// The number of the consumer to which the partition is assigned, in the modes that keep order.
    pub assigned: Option<u32>,
    /// The number of the consumer that holds the records in flight, in the modes that keep order.
    pub holder: u32,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerRecord {
    /// Its number within the group; each process that takes the name gets a new one.
    pub number: u32,
    /// A random number of its OS process.
    pub incarnation: u64,
    /// The incarnation of the process that had the name before; it may not take the name back.
    pub replaced: Option<u64>,
    /// The worker on whose behalf it consumes: its records are counted there, and it gets none while that worker drains
    /// (A20, A21).
    pub worker: Option<WorkerId>,
    /// When it joined, in milliseconds.
    pub joined_at_ms: u64,
    /// The time of its last heartbeat, accurate to a few seconds; in milliseconds.
    pub last_heartbeat_at_ms: u64,
}

/// A delivery's place among those of its group.
pub type DeliveryPosition = (ConsumerName, TakeId);

/// The records of one take that have not been acked or returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The number of the consumer.
    pub consumer: u32,
    /// At least one.
    pub records: Vec<DeliveredRecord>,
}

/// A record in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredRecord {
    /// Its id.
    pub id: RecordId,
    /// Its partition.
    pub partition: u32,
    /// The number of this delivery, from 1.
    pub attempt: u32,
    /// Its ack deadline, in milliseconds.
    pub expires_at_ms: u64,
}

/// A returned record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedeliveryRecord {
    /// Its partition.
    pub partition: u32,
    /// Deliveries so far that count.
    pub attempts: u32,
    /// When it may be redelivered, in milliseconds.
    pub due_ms: u64,
}

impl GroupRecord {
    /// Whether the records of a partition are delivered in order: no record is delivered while an earlier one waits for
    /// redelivery or is in flight with another consumer (W41).
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        match self.settings.mode() {
            GroupMode::Shared => false,
            GroupMode::Exclusive | GroupMode::KeyShared => true,
        }
    }

    /// Whether retention keeps the records that the group has not consumed (A32).
    #[must_use]
    pub fn holds_retention(&self) -> bool {
        let trigger = self.trigger.as_ref();
        trigger.is_some_and(|trigger| trigger.holds_retention)
    }

    /// The group's state for the partition `number`, if the stream has it.
    #[must_use]
    pub fn partition(&self, number: u32) -> Option<&GroupPartition> {
        self.partitions.get(usize::try_from(number).ok()?)
    }

    /// Records that were delivered and not acked.
    #[must_use]
    pub fn pending_count(&self) -> u32 {
        let counts = self.partitions.iter().map(GroupPartition::pending_count);
        counts.sum()
    }

    /// Records that wait for redelivery.
    #[must_use]
    pub fn waiting_count(&self) -> u32 {
        self.partitions.iter().map(|one| one.waiting_count).sum()
    }

    /// Records that were never delivered.
    #[must_use]
    pub fn lag(&self, stream: &StreamRecord) -> u64 {
        let partitions = self.partitions.iter().zip(&stream.partitions);
        partitions.map(|(own, partition)| own.lag(partition)).sum()
    }

    /// Whether the consumer `number` may get records of the partition.
    #[must_use]
    pub fn may_take(&self, partition: &GroupPartition, number: u32) -> bool {
        let is_free = partition.in_flight_count == 0 || partition.holder == number;
        !self.keeps_order() || (partition.assigned == Some(number) && is_free)
    }

    /// Whether new records of the partition may be delivered to the consumer `number`.
    #[must_use]
    pub fn is_open(&self, partition: &GroupPartition, number: u32) -> bool {
        let is_held_up = self.keeps_order() && partition.waiting_count > 0;
        self.may_take(partition, number) && !is_held_up
    }

    /// The sort key of a waiting record: the partition in the modes that keep order, otherwise its due time.
    #[must_use]
    pub fn rank(&self, waiting: &RedeliveryRecord) -> u64 {
        if self.keeps_order() {
            u64::from(waiting.partition)
        } else {
            waiting.due_ms
        }
    }
}

impl GroupPartition {
    /// Records of the partition that were delivered and not acked.
    #[must_use]
    pub fn pending_count(&self) -> u32 {
        self.in_flight_count + self.waiting_count
    }

    /// Records that were never delivered.
    #[must_use]
    pub fn lag(&self, partition: &PartitionRecord) -> u64 {
        let gone_count = self.passed_count.max(partition.removed_count());
        partition.appended_count - gone_count
    }
}

impl Key for TakeId {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u64::decode(bytes).map(Self)
    }
}
