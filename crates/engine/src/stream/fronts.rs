//! The oldest records of a stream's partitions, read ahead for retention.
//!
//! Retention removes the oldest record of all partitions, one after the other. If the partitions were filled in turn,
//! each removal is in another one than the last; so a batch of records of a partition is read with one seek. The first
//! batch is small, because most appends remove few records; each further one is twice as large.

use super::RecordId;
use crate::ids::StreamNumber;
use crate::limits::{FRONT_BATCH_BYTES_MAX, FRONT_BATCH_RECORDS_MAX};
use crate::store::StoreError;
use crate::tables::Records;
use crate::turn::Turn;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

/// Records of a first batch: the one that is removed, and the one that is the front then.
const FIRST_BATCH_RECORDS: usize = 2;

/// What was read of the partitions of a stream.
pub(super) struct Fronts {
    stream: StreamNumber,
    partitions: BTreeMap<u32, ReadAhead>,
}

/// A record that was taken from the front of its partition.
pub(super) struct TakenFront {
    /// Its size in bytes.
    pub(super) size: u64,
    /// The record after it.
    pub(super) next: Option<RecordId>,
}

/// What was read of a partition.
struct ReadAhead {
    /// The oldest records and their sizes in bytes.
    records: VecDeque<(RecordId, u64)>,
    /// How many records the next batch reads.
    batch_records: usize,
    /// Whether there are no further records.
    is_complete: bool,
}

impl Fronts {
    pub(super) fn new(stream: StreamNumber) -> Self {
        Self {
            stream,
            partitions: BTreeMap::new(),
        }
    }

    /// Takes the record `front`, which is the oldest of the partition. The caller deletes it.
    pub(super) fn take(
        &mut self,
        turn: &Turn<'_, '_>,
        partition: u32,
        front: RecordId,
    ) -> Result<TakenFront, StoreError> {
        let stream = self.stream;
        let ahead = self.partitions.entry(partition).or_default();
        if ahead.records.len() < 2 && !ahead.is_complete {
            let last = ahead.records.back();
            let from = last.map_or(front, |(last, _)| last.next());
            ahead.read(turn, (stream, partition, from))?;
        }
        let taken = ahead.records.pop_front();
        let (id, size) = taken.expect("the front of a partition is stored");
        assert_eq!(id, front, "a partition's front is its oldest record");
        let next = ahead.records.front().map(|(next, _)| *next);
        Ok(TakenFront { size, next })
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self {
            records: VecDeque::new(),
            batch_records: FIRST_BATCH_RECORDS,
            is_complete: false,
        }
    }
}

impl ReadAhead {
    /// Reads a batch, so that at least two records are known if there are two.
    fn read(
        &mut self,
        turn: &Turn<'_, '_>,
        from: (StreamNumber, u32, RecordId),
    ) -> Result<(), StoreError> {
        let (mut count, mut bytes) = (0, 0);
        self.is_complete = true;
        let partition = (from.0, from.1);
        turn.visit_from::<Records>(&partition, &from, |(_, _, id), content| {
            let size = content.size();
            self.records.push_back((id, size));
            count += 1;
            bytes += size;
            let is_full = count >= self.batch_records || bytes >= FRONT_BATCH_BYTES_MAX;
            if is_full && self.records.len() >= FIRST_BATCH_RECORDS {
                self.is_complete = false;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.batch_records = FRONT_BATCH_RECORDS_MAX.min(2 * self.batch_records);
        Ok(())
    }
}
