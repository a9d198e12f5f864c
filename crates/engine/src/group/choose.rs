//! Selects the records of a take: redeliveries first, then new records.

use super::waiting::{self, RedeliveryKey};
use super::{NumberedGroup, partition_of, pass};
use crate::limits::{PENDING_MAX, READ_BYTES_MAX};
use crate::store::StoreError;
use crate::stream::RecordId;
use crate::tables::{
    GroupPartition, GroupRecord, RecordContent, Records, Redeliveries, RedeliveryRecord,
    StreamRecord,
};
use crate::turn::Turn;
use std::ops::ControlFlow;

/// A record to be delivered.
pub(super) struct ChosenRecord {
    pub(super) id: RecordId,
    pub(super) partition: u32,
    /// The number of this delivery, from 1.
    pub(super) attempt: u32,
}

/// The records for a consumer, and the group's state after their delivery.
pub(super) struct Choice<'a> {
    target: &'a mut NumberedGroup,
    stream: &'a StreamRecord,
    /// The consumer's number.
    consumer: u32,
    count_left: usize,
    bytes_left: u64,
    pub(super) chosen: Vec<ChosenRecord>,
    /// Whether records were dropped from the group because the stream has removed them.
    pub(super) is_anything_lost: bool,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        target: &'a mut NumberedGroup,
        stream: &'a StreamRecord,
        consumer: u32,
        count_max: usize,
    ) -> Self {
        Self {
            target,
            stream,
            consumer,
            count_left: count_max,
            bytes_left: READ_BYTES_MAX,
            chosen: Vec::new(),
            is_anything_lost: false,
        }
    }

    pub(super) fn fill(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
        self.fill_waiting(turn)?;
        self.fill_new(turn)
    }

    fn group(&mut self) -> &mut GroupRecord {
        &mut self.target.1
    }

    fn is_full(&self) -> bool {
        self.count_left == 0 || self.bytes_left == 0
    }

    /// Whether a record fits into the delivery; a record larger than a whole delivery goes alone.
    fn fits(&self, content: &RecordContent) -> bool {
        !self.is_full() && (content.size() <= self.bytes_left || self.chosen.is_empty())
    }

    fn choose(&mut self, chosen: ChosenRecord, content: &RecordContent) {
        let consumer = self.consumer;
        let partition = partition_of(self.group(), chosen.partition);
        partition.in_flight_count += 1;
        partition.holder = consumer;
        self.count_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(content.size());
        self.chosen.push(chosen);
    }

    fn fill_waiting(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
        let orders: Vec<Option<u32>> = waiting::orders(&self.target.1).collect();
        for order in orders {
            let own = order.map(|partition| *partition_of(self.group(), partition));
            let is_closed = |own: &GroupPartition| !self.target.1.may_take(own, self.consumer);
            if !own.as_ref().is_some_and(is_closed) {
                self.fill_waiting_of(turn, order)?;
            }
        }
        Ok(())
    }

    /// Adds waiting records of one order until one is not due.
    fn fill_waiting_of(
        &mut self,
        turn: &mut Turn<'_, '_>,
        order: Option<u32>,
    ) -> Result<(), StoreError> {
        let now_ms = turn.now_ms();
        let range = waiting::range(self.target.0, &self.target.1, order);
        let mut due = Vec::new();
        turn.visit_range::<Redeliveries>(&range, |key, waiting| {
            if waiting.due_ms > now_ms || due.len() == self.count_left {
                return ControlFlow::Break(());
            }
            due.push((key, *waiting));
            ControlFlow::Continue(())
        })?;
        for (key, waiting) in due {
            if self.choose_again(turn, &key, waiting)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn choose_again(
        &mut self,
        turn: &mut Turn<'_, '_>,
        key: &RedeliveryKey,
        found: RedeliveryRecord,
    ) -> Result<ControlFlow<()>, StoreError> {
        let (_, _, id) = *key;
        let partition = found.partition;
        let content = turn.get::<Records>(&(self.target.1.stream, partition, id))?;
        if content.as_ref().is_some_and(|content| !self.fits(content)) {
            return Ok(ControlFlow::Break(()));
        }
        waiting::take(turn, self.group(), key, &found);
        match content {
            Some(content) => {
                let attempt = found.attempts.saturating_add(1);
                let chosen = ChosenRecord {
                    id,
                    partition,
                    attempt,
                };
                self.choose(chosen, &content);
            }
            None => {
                self.group().lost_count += 1;
                self.is_anything_lost = true;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn fill_new(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
        let pending_left = PENDING_MAX.saturating_sub(self.target.1.pending_count());
        self.count_left = self.count_left.min(pending_left as usize);
        let count = u32::try_from(self.stream.partitions.len()).expect("a few partitions");
        let first = self.target.1.next_partition;
        let before = self.chosen.len();
        for step in 0..count {
            if self.is_full() {
                break;
            }
            self.fill_from(turn, (first + step) % count)?;
        }
        if self.chosen.len() > before {
            self.group().next_partition = (first + 1) % count;
        }
        Ok(())
    }

    /// Adds new records of one partition, in order.
    fn fill_from(&mut self, turn: &mut Turn<'_, '_>, partition: u32) -> Result<(), StoreError> {
        let (consumer, stream) = (self.consumer, self.stream);
        let own = *partition_of(self.group(), partition);
        let found = stream.partition(partition).copied().unwrap_or_default();
        let Some(front) = found.front else {
            return Ok(());
        };
        if own.lag(&found) == 0 || !self.target.1.is_open(&own, consumer) {
            return Ok(());
        }
        let number = self.target.1.stream;
        let place = (number, partition, own.next.max(front));
        turn.visit_from::<Records>(&(number, partition), &place, |(_, _, id), content| {
            if !self.fits(&content) {
                return ControlFlow::Break(());
            }
            pass(self.group(), partition, id, content.position);
            let chosen = ChosenRecord {
                id,
                partition,
                attempt: 1,
            };
            self.choose(chosen, &content);
            ControlFlow::Continue(())
        })
    }
}
