//! Retention: trims a stream to its limits (A32).
//!
//! The oldest records go first, across all partitions, in bounded batches. Each append does one batch, so that a stream
//! at its limit stays there. The stream's timer does the rest; it is brought forward when a trigger has consumed
//! records that it held. The first record of each partition is known, so no scan walks the tombstones of removed
//! records; the records after it are read in batches.

use super::fronts::{Fronts, TakenFront};
use super::{RecordId, load, store};
use crate::effect::Effect;
use crate::group;
use crate::ids::StreamNumber;
use crate::limits::{SWEEP_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::quota::QuotaDimension;
use crate::store::StoreError;
use crate::tables::{Records, StreamRecord, Streams, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Turn, TurnResult};
use std::sync::Arc;

/// The remaining budget of one batch.
struct SweepBudget {
    rows: usize,
    bytes: u64,
}

impl SweepBudget {
    fn is_left(&self) -> bool {
        self.rows > 0 && self.bytes > 0
    }

    fn take(&mut self, bytes: u64) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Handles the stream's timer.
pub(crate) fn fire_timer(turn: &mut Turn<'_, '_>, number: StreamNumber) -> TurnResult<()> {
    let Some(stream) = turn.get::<Streams>(&number)? else {
        return Ok(());
    };
    let mut stream = Arc::unwrap_or_clone(stream);
    stream.sweep_due_ms = None;
    sweep_and_store(turn, number, stream)?;
    Ok(())
}

/// A trigger has advanced or no longer holds retention. If the stream exceeds its limits, the records that it kept only
/// for this trigger are removed (A32).
pub(crate) fn hold_moved(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Result<(), StoreError> {
    if turn.is_stream_quarantined(number) {
        return Ok(());
    }
    let stream = load(turn, number)?;
    let limits = Limits::find(turn, number, &stream)?;
    if limits.oldest(&stream).is_none() {
        return Ok(());
    }
    let mut stream = Arc::unwrap_or_clone(stream);
    let timer = sweep_timer(number, turn.now_ms());
    timer::bring_forward(turn, &mut stream.sweep_due_ms, timer);
    turn.put::<Streams>(&number, stream);
    Ok(())
}

/// Removes a batch, and with the last batch of a deleted stream the stream itself.
pub(super) fn sweep_and_store(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    mut stream: StreamRecord,
) -> Result<(), StoreError> {
    sweep(turn, number, &mut stream)?;
    if !stream.is_deleted || stream.record_count > 0 {
        return store(turn, number, stream);
    }
    if let Some(due_ms) = stream.sweep_due_ms {
        turn.clear_timer(sweep_timer(number, due_ms));
    }
    turn.delete::<Streams>(&number);
    Ok(())
}

/// Removes a batch of what exceeds the limits, and schedules the rest.
pub(super) fn sweep(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    stream: &mut StreamRecord,
) -> Result<(), StoreError> {
    // Retention of a quarantined stream is not retried on behalf of other subjects: a trigger that reads it, or a group
    // whose dead letters it stores (design rule 10).
    if turn.is_stream_quarantined(number) {
        return Ok(());
    }
    let mut budget = SweepBudget {
        rows: SWEEP_ROWS_MAX,
        bytes: SWEEP_BYTES_MAX,
    };
    let limits = Limits::find(turn, number, stream)?;
    let (lost_before, bytes_before) = (stream.lost_count, stream.bytes);
    let mut fronts = Fronts::new(number);
    while budget.is_left() {
        let Some(going) = limits.oldest(stream) else {
            break;
        };
        let taken = fronts.take(turn, going.partition, going.id)?;
        turn.delete::<Records>(&(number, going.partition, going.id));
        budget.take(taken.size);
        count_out(stream, &going, &taken);
    }
    let sizes = (bytes_before, stream.bytes);
    turn.note_size(&stream.namespace, QuotaDimension::StreamBytes, sizes);
    if stream.lost_count > lost_before {
        turn.effect(Effect::RecordsLost {
            namespace: stream.namespace.clone(),
            stream: stream.name.clone(),
            count: stream.lost_count - lost_before,
        });
    }
    if let Some(due_ms) = limits.next_due_ms(stream) {
        let timer = sweep_timer(number, due_ms);
        timer::bring_forward(turn, &mut stream.sweep_due_ms, timer);
    }
    Ok(())
}

/// A record to be removed: the oldest of its partition.
struct Going {
    partition: u32,
    id: RecordId,
    /// Whether it is removed although a trigger has not consumed it.
    is_lost: bool,
}

/// The limits that a sweep applies.
struct Limits {
    now_ms: u64,
    /// By partition: the first record that triggers still need (A32).
    holds: Vec<RecordId>,
}

/// Whether the first record of a partition stays.
#[derive(PartialEq, Eq)]
enum Verdict {
    Stays,
    Goes,
    /// It is removed although a trigger has not consumed it.
    IsLost,
}

impl Limits {
    /// Looks up the holds only if there is something to remove.
    fn find(
        turn: &mut Turn<'_, '_>,
        number: StreamNumber,
        stream: &StreamRecord,
    ) -> Result<Self, StoreError> {
        let mut limits = Self {
            now_ms: turn.now_ms(),
            holds: vec![RecordId::END; stream.partitions.len()],
        };
        if stream.holds_count > 0 && limits.oldest(stream).is_some() {
            limits.holds = group::holds(turn, number, stream.partitions.len())?;
        }
        Ok(limits)
    }

    /// The oldest record that must be removed, over all partitions.
    fn oldest(&self, stream: &StreamRecord) -> Option<Going> {
        let partitions = (0..).zip(&stream.partitions);
        let fronts = partitions.filter_map(|(partition, found)| Some((partition, found.front?)));
        let going = fronts.filter_map(|(partition, id)| {
            let verdict = self.judge(stream, partition, id);
            let is_lost = verdict == Verdict::IsLost;
            (verdict != Verdict::Stays).then_some(Going {
                partition,
                id,
                is_lost,
            })
        });
        going.min_by_key(|going| going.id)
    }

    fn judge(&self, stream: &StreamRecord, partition: u32, id: RecordId) -> Verdict {
        let retention = &stream.settings.retention;
        let is_over = |found: u64, max: Option<u64>| max.is_some_and(|max| found > max);
        let is_old = retention
            .max_age_ms
            .is_some_and(|max_age_ms| id.ms.saturating_add(max_age_ms) <= self.now_ms);
        let is_given_up = id < stream.trim.before || stream.trim.count > 0;
        let is_excess = stream.bytes > stream.settings.bytes_limit;
        let is_due = is_old
            || is_over(stream.bytes, retention.max_bytes)
            || is_over(stream.record_count, retention.count_max);
        let is_wanted = id >= self.holds[position_of(partition)];
        match (is_given_up, is_excess, is_due, is_wanted) {
            (true, _, _, _) | (_, true, _, false) | (_, _, true, false) => Verdict::Goes,
            (false, true, _, true) => Verdict::IsLost,
            (false, false, false, _) | (false, false, true, true) => Verdict::Stays,
        }
    }

    /// When the next record must be removed, in milliseconds.
    fn next_due_ms(&self, stream: &StreamRecord) -> Option<u64> {
        if self.oldest(stream).is_some() {
            return Some(self.now_ms);
        }
        let max_age_ms = stream.settings.retention.max_age_ms?;
        let fronts = stream.partitions.iter().filter_map(|one| one.front);
        // Records that are already too old are held by a trigger, which reports when it has advanced.
        fronts
            .map(|front| front.ms.saturating_add(max_age_ms))
            .filter(|due_ms| *due_ms > self.now_ms)
            .min()
    }
}

/// Updates a stream's counters for a record that is removed.
fn count_out(stream: &mut StreamRecord, going: &Going, taken: &TakenFront) {
    stream.lost_count += u64::from(going.is_lost);
    stream.record_count -= 1;
    stream.bytes -= taken.size;
    stream.trim.count = stream.trim.count.saturating_sub(1);
    let partition = &mut stream.partitions[position_of(going.partition)];
    partition.record_count -= 1;
    partition.front = taken.next;
}

/// The place of a partition in the lists of a stream.
fn position_of(partition: u32) -> usize {
    usize::try_from(partition).expect("a partition is a place in a list")
}

pub(super) fn sweep_timer(number: StreamNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StreamSweep,
        due_ms,
        subject: number.0,
        detail: 0,
    }
}
