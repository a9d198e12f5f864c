//! Consumer groups (A31).
//!
//! A group remembers how far it has read each partition; a record has rows of its own only while it
//! is in flight or waits to be delivered again.

use super::{Key, KeyBytes, tables};
use crate::definition::Consumption;
use crate::group::{GroupSettings, TakeId};
use crate::ids::{
    ConsumerName, GroupName, GroupNumber, Namespace, StreamNumber, WorkerId, WorkflowName,
};
use crate::stream::RecordId;
use crate::tables::{PartitionRecord, StreamRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

tables! {
    /// By number. Live until the group is deleted and its rows are swept.
    54 Groups(GroupNumber) -> GroupRecord, HOT;
    /// Groups by stream and name. Live until the group or its stream is deleted.
    55 GroupNames((StreamNumber, GroupName)) -> GroupNumber, HOT;
    /// By group and name. Live until they leave or have been silent for too long.
    56 Consumers((GroupNumber, ConsumerName)) -> ConsumerRecord, HOT;
    /// Records in flight, by who has them and the take that gave them. Live until each of them is
    /// acknowledged or given back.
    57 Deliveries((GroupNumber, ConsumerName, TakeId)) -> DeliveryRecord, HOT;
    /// Records that were given back, by [`GroupRecord::rank`] and id. Live until they are delivered
    /// again or go to the dead-letter stream.
    58 Redeliveries((GroupNumber, u64, RecordId)) -> RedeliveryRecord;
}

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// The stream that it reads.
    pub stream: StreamNumber,
    /// Its name.
    pub name: GroupName,
    /// What it was created with.
    pub settings: GroupSettings,
    /// The trigger that reads with it: then nobody else may (W41).
    pub trigger: Option<GroupTrigger>,
    /// How far each partition of the stream is read.
    pub partitions: Vec<GroupPartition>,
    /// The partition from which the next take is filled, so that none is starved.
    pub next_partition: u32,
    /// Consumers that it has.
    pub consumers_count: u32,
    /// Consumers that ever joined: the number of the last one.
    pub joins_count: u32,
    /// Records that were acknowledged.
    pub acked_count: u64,
    /// Records that went to the dead-letter stream.
    pub dead_count: u64,
    /// Records that the stream removed before they were acknowledged.
    pub lost_count: u64,
    /// Records in flight, by the time in milliseconds at which their lease ends.
    pub leases: BTreeMap<u64, u32>,
    /// Whether consumers that are gone may have left records in flight.
    pub has_abandoned: bool,
    /// The numbers of those among them that left of their own accord.
    pub left: BTreeSet<u32>,
    /// Where the timer goes on with giving back what has ended, while it is about that.
    pub pass_from: Option<DeliveryPlace>,
    /// No record that waits is due before this time, in milliseconds.
    pub waiting_from_ms: u64,
    /// No consumer has been silent for too long before this time, in milliseconds.
    pub silence_due_ms: Option<u64>,
    /// When its timer is due, in milliseconds.
    pub timer_due_ms: Option<u64>,
    /// Whether it is deleted: nobody finds it by name, its rows are being swept.
    pub is_deleted: bool,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
}

/// The trigger that a group belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTrigger {
    /// Whose trigger.
    pub workflow: (Namespace, WorkflowName),
    /// Whether retention keeps what it has not read (A32): while it is enabled.
    pub holds_retention: bool,
}

/// How far a group has read one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPartition {
    /// The record that goes out next is the first one at or behind this id.
    pub next: RecordId,
    /// The position in the partition of the last record that went out.
    pub passed_count: u64,
    /// Records in flight.
    pub in_flight_count: u32,
    /// Records that wait to be delivered again.
    pub waiting_count: u32,
    /// None of these comes before this one, in the modes that keep order.
    pub waiting_from: RecordId,
    /// The number of the consumer that new records go to, in the modes that keep order.
    pub assigned: Option<u32>,
    /// The number of the consumer that the records in flight went to, in the modes that keep order.
    pub holder: u32,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerRecord {
    /// Its number within the group: a new one with each process that takes the name.
    pub number: u32,
    /// A random number of its process.
    pub incarnation: u64,
    /// That of the process which had the name before: it joined once, and may not take the name back.
    pub replaced: Option<u64>,
    /// The worker that it consumes for: its records are counted there, and it gets nothing while that
    /// worker drains (A20, A21).
    pub worker: Option<WorkerId>,
    /// When it joined, in milliseconds.
    pub joined_at_ms: u64,
    /// When it was last heard, give or take a few seconds; in milliseconds.
    pub heard_at_ms: u64,
}

/// A delivery's place among those of its group.
pub type DeliveryPlace = (ConsumerName, TakeId);

/// What one take gave to a consumer and is not settled yet.
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
    /// Where it lies.
    pub partition: u32,
    /// Which delivery of it this is, from 1.
    pub attempt: u32,
    /// When it goes to another unless it is settled or touched, in milliseconds.
    pub expires_at_ms: u64,
}

/// A record that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedeliveryRecord {
    /// Where it lies.
    pub partition: u32,
    /// Deliveries so far that count.
    pub attempts: u32,
    /// When it may be delivered again, in milliseconds.
    pub due_ms: u64,
}

impl GroupRecord {
    /// Whether records of one partition go out in their order: none does while an earlier one waits
    /// to be delivered again, or is in flight with another consumer (W41).
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        match self.settings.mode() {
            Consumption::Shared => false,
            Consumption::Exclusive | Consumption::KeyShared => true,
        }
    }

    /// Whether retention keeps what the group has not read (A32).
    #[must_use]
    pub fn holds_retention(&self) -> bool {
        let trigger = self.trigger.as_ref();
        trigger.is_some_and(|trigger| trigger.holds_retention)
    }

    /// What the group knows of the partition `number`, if the stream has it.
    #[must_use]
    pub fn partition(&self, number: u32) -> Option<&GroupPartition> {
        self.partitions.get(usize::try_from(number).ok()?)
    }

    /// Records that went out and are not settled.
    #[must_use]
    pub fn pending_count(&self) -> u32 {
        let counts = self.partitions.iter().map(GroupPartition::pending_count);
        counts.sum()
    }

    /// Records that wait to be delivered again.
    #[must_use]
    pub fn waiting_count(&self) -> u32 {
        self.partitions.iter().map(|one| one.waiting_count).sum()
    }

    /// Records that never went out.
    #[must_use]
    pub fn lag(&self, stream: &StreamRecord) -> u64 {
        let partitions = self.partitions.iter().zip(&stream.partitions);
        partitions.map(|(own, partition)| own.lag(partition)).sum()
    }

    /// Whether the consumer `number` may have records of the partition.
    #[must_use]
    pub fn may_take(&self, partition: &GroupPartition, number: u32) -> bool {
        let is_free = partition.in_flight_count == 0 || partition.holder == number;
        !self.keeps_order() || (partition.assigned == Some(number) && is_free)
    }

    /// Whether new records of the partition may go out to the consumer `number`, once there are any.
    #[must_use]
    pub fn is_open(&self, partition: &GroupPartition, number: u32) -> bool {
        let is_held_up = self.keeps_order() && partition.waiting_count > 0;
        self.may_take(partition, number) && !is_held_up
    }

    /// The place of a record among those that wait: in the modes that keep order by partition and
    /// then by id, else by the time when it is due.
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
    /// Records of the partition that went out and are not settled.
    #[must_use]
    pub fn pending_count(&self) -> u32 {
        self.in_flight_count + self.waiting_count
    }

    /// Records that never went out.
    #[must_use]
    pub fn lag(&self, partition: &PartitionRecord) -> u64 {
        let gone_count = self.passed_count.max(partition.removed_count());
        partition.appended_count - gone_count
    }
}

impl Key for TakeId {
    fn encode(&self, out: &mut KeyBytes) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u64::decode(bytes).map(Self)
    }
}
