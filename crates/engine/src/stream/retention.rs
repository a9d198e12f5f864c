//! Retention: trims a stream to its limits (A32).
//!
//! The oldest records go first, across all partitions, in bounded batches. Each append does one batch, so that a stream
//! at its limit stays there. The stream's timer does the rest; it is brought forward when a trigger has consumed
//! records that it held. The first record of each partition is known, so no scan walks the tombstones of removed
//! records.

use super::{RecordId, load, store};
use crate::effect::Effect;
use crate::group;
use crate::ids::StreamNumber;
use crate::limits::{SWEEP_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::store::StoreError;
use crate::tables::{Records, StreamRecord, Streams, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Turn, TurnResult};
use std::ops::ControlFlow;
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
    if limits.oldest_run(&stream).is_none() {
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
    let budget = SweepBudget {
        rows: SWEEP_ROWS_MAX,
        bytes: SWEEP_BYTES_MAX,
    };
    let mut sweep = Sweep {
        number,
        limits: Limits::find(turn, number, stream)?,
        budget,
    };
    let lost_before = stream.lost_count;
    while let Some(run) = sweep.limits.oldest_run(stream) {
        if !sweep.budget.is_left() {
            break;
        }
        sweep.remove(turn, stream, &run)?;
    }
    if stream.lost_count > lost_before {
        turn.effect(Effect::RecordsLost {
            namespace: stream.namespace.clone(),
            stream: stream.name.clone(),
            count: stream.lost_count - lost_before,
        });
    }
    if let Some(due_ms) = sweep.limits.next_due_ms(stream) {
        let timer = sweep_timer(number, due_ms);
        timer::bring_forward(turn, &mut stream.sweep_due_ms, timer);
    }
    Ok(())
}

/// Consecutive records of one partition that are older than all others to be removed.
struct Run {
    partition: usize,
    from: RecordId,
    until: RecordId,
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
        if stream.holds_count > 0 && limits.oldest_run(stream).is_some() {
            limits.holds = group::holds(turn, number, stream.partitions.len())?;
        }
        Ok(limits)
    }

    fn oldest_run(&self, stream: &StreamRecord) -> Option<Run> {
        let fronts = stream.partitions.iter().enumerate();
        let mut going: Vec<(RecordId, usize)> = fronts
            .filter_map(|(partition, record)| Some((record.front?, partition)))
            .filter(|(front, partition)| self.judge(stream, *front, *partition) != Verdict::Stays)
            .collect();
        going.sort_unstable();
        let (from, partition) = *going.first()?;
        let until = going.get(1).map_or(RecordId::END, |(front, _)| *front);
        Some(Run {
            partition,
            from,
            until,
        })
    }

    fn judge(&self, stream: &StreamRecord, id: RecordId, partition: usize) -> Verdict {
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
        let is_wanted = id >= self.holds[partition];
        match (is_given_up, is_excess, is_due, is_wanted) {
            (true, _, _, _) | (_, true, _, false) | (_, _, true, false) => Verdict::Goes,
            (false, true, _, true) => Verdict::IsLost,
            (false, false, false, _) | (false, false, true, true) => Verdict::Stays,
        }
    }

    /// When the next record must be removed, in milliseconds.
    fn next_due_ms(&self, stream: &StreamRecord) -> Option<u64> {
        if self.oldest_run(stream).is_some() {
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

/// A sweep of one stream.
struct Sweep {
    number: StreamNumber,
    limits: Limits,
    budget: SweepBudget,
}

impl Sweep {
    /// Removes the records of a run, as far as limits and budget say.
    fn remove(
        &mut self,
        turn: &mut Turn<'_, '_>,
        stream: &mut StreamRecord,
        run: &Run,
    ) -> Result<(), StoreError> {
        let number = self.number;
        let partition = u32::try_from(run.partition).expect("a stream has few partitions");
        let place = (number, partition, run.from);
        let mut gone = Vec::new();
        let mut front = None;
        turn.visit_from::<Records>(&(number, partition), &place, |(_, _, id), content| {
            let verdict = self.limits.judge(stream, id, run.partition);
            if verdict == Verdict::Stays || id >= run.until || !self.budget.is_left() {
                front = Some(id);
                return ControlFlow::Break(());
            }
            stream.lost_count += u64::from(verdict == Verdict::IsLost);
            self.budget.take(content.size());
            stream.record_count -= 1;
            stream.bytes -= content.size();
            stream.trim.count = stream.trim.count.saturating_sub(1);
            stream.partitions[run.partition].record_count -= 1;
            gone.push(id);
            ControlFlow::Continue(())
        })?;
        stream.partitions[run.partition].front = front;
        for id in gone {
            turn.delete::<Records>(&(number, partition, id));
        }
        Ok(())
    }
}

pub(super) fn sweep_timer(number: StreamNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StreamSweep,
        due_ms,
        subject: number.0,
        detail: 0,
    }
}
