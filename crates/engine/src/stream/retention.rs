//! Bringing a stream back to its limits (A32).
//!
//! The oldest records go first, over all partitions, and in bounded pieces: one with each append, so
//! that a stream at its limit stays there, and more when its timer is due: that is brought forward once
//! those who held records have read on. Each partition's front is known, so no scan walks what was
//! removed before.

use super::{RecordId, load, store};
use crate::effect::Effect;
use crate::group;
use crate::ids::StreamNumber;
use crate::limits::{SWEEP_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::store::StoreError;
use crate::tables::{Records, StreamRecord, Streams, TimerKey, TimerKind};
use crate::timer;
use crate::turn::{Outcome, Turn};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is left of one piece of work.
struct Room {
    rows: usize,
    bytes: u64,
}

impl Room {
    fn is_left(&self) -> bool {
        self.rows > 0 && self.bytes > 0
    }

    fn take(&mut self, bytes: u64) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The stream's timer fires.
pub(crate) fn fall_due(turn: &mut Turn<'_, '_>, number: StreamNumber) -> Outcome<()> {
    let Some(stream) = turn.get::<Streams>(&number)? else {
        return Ok(());
    };
    let mut stream = Arc::unwrap_or_clone(stream);
    stream.sweep_due_ms = None;
    sweep_and_store(turn, number, stream)?;
    Ok(())
}

/// A trigger has read on, or holds nothing any more: what the stream kept for it goes, if it is over
/// its limits and nobody else holds it (A32).
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

/// Removes a piece, and with the last piece of a deleted stream the stream.
pub(super) fn sweep_and_store(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    mut stream: StreamRecord,
) -> Result<(), StoreError> {
    sweep(turn, number, &mut stream)?;
    if !stream.is_deleted || stream.records_count > 0 {
        return store(turn, number, stream);
    }
    if let Some(due_ms) = stream.sweep_due_ms {
        turn.clear_timer(sweep_timer(number, due_ms));
    }
    turn.delete::<Streams>(&number);
    Ok(())
}

/// Removes a piece of what is over the limits, and sees to the rest.
pub(super) fn sweep(
    turn: &mut Turn<'_, '_>,
    number: StreamNumber,
    stream: &mut StreamRecord,
) -> Result<(), StoreError> {
    // What failed for a stream that was set aside is not tried again on behalf of others: of a trigger
    // that reads it, or a group whose dead letters it keeps (design rule 10).
    if turn.is_stream_quarantined(number) {
        return Ok(());
    }
    let mut room = Room {
        rows: SWEEP_ROWS_MAX,
        bytes: SWEEP_BYTES_MAX,
    };
    let limits = Limits::find(turn, number, stream)?;
    let lost_before = stream.lost_count;
    while let Some(run) = limits.oldest_run(stream) {
        if !room.is_left() {
            break;
        }
        remove(turn, (number, stream), (&limits, &run), &mut room)?;
    }
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

/// Records of one partition that are older than all others that must go.
struct Run {
    partition: usize,
    from: RecordId,
    until: RecordId,
}

/// What a sweep goes by.
struct Limits {
    now_ms: u64,
    /// By partition: from this record on triggers want what there is (A32).
    holds: Vec<RecordId>,
}

/// Whether a record at the front of its partition stays.
#[derive(PartialEq, Eq)]
enum Verdict {
    Stays,
    Goes,
    /// It goes although a trigger wants it.
    IsLost,
}

impl Limits {
    /// Who holds what is looked up only when there is something to remove.
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
            .filter(|front| self.judge(stream, *front) != Verdict::Stays)
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

    fn judge(&self, stream: &StreamRecord, (id, partition): (RecordId, usize)) -> Verdict {
        let retention = &stream.settings.retention;
        let is_over = |found: u64, max: Option<u64>| max.is_some_and(|max| found > max);
        let is_old = retention
            .age_ms_max
            .is_some_and(|age_ms_max| id.ms.saturating_add(age_ms_max) <= self.now_ms);
        let is_given_up = id < stream.trim.before || stream.trim.count > 0;
        let is_excess = stream.bytes > stream.settings.bytes_limit;
        let is_due = is_old
            || is_over(stream.bytes, retention.bytes_max)
            || is_over(stream.records_count, retention.count_max);
        let is_wanted = id >= self.holds[partition];
        match (is_given_up, is_excess, is_due, is_wanted) {
            (true, _, _, _) | (_, true, _, false) | (_, _, true, false) => Verdict::Goes,
            (false, true, _, true) => Verdict::IsLost,
            (false, false, false, _) | (false, false, true, true) => Verdict::Stays,
        }
    }

    /// When there is something to remove next, in milliseconds.
    fn next_due_ms(&self, stream: &StreamRecord) -> Option<u64> {
        if self.oldest_run(stream).is_some() {
            return Some(self.now_ms);
        }
        let age_ms_max = stream.settings.retention.age_ms_max?;
        let fronts = stream.partitions.iter().filter_map(|one| one.front);
        // What is old already is held by a trigger, which says when it has read on.
        fronts
            .map(|front| front.ms.saturating_add(age_ms_max))
            .filter(|due_ms| *due_ms > self.now_ms)
            .min()
    }
}

/// Removes the records of a run, as far as they must go and there is room.
fn remove(
    turn: &mut Turn<'_, '_>,
    (number, stream): (StreamNumber, &mut StreamRecord),
    (limits, run): (&Limits, &Run),
    room: &mut Room,
) -> Result<(), StoreError> {
    let partition = u32::try_from(run.partition).expect("a stream has few partitions");
    let place = (number, partition, run.from);
    let mut gone = Vec::new();
    let mut front = None;
    turn.visit_from::<Records>(&(number, partition), &place, |(_, _, id), content| {
        let verdict = limits.judge(stream, (id, run.partition));
        if verdict == Verdict::Stays || id >= run.until || !room.is_left() {
            front = Some(id);
            return ControlFlow::Break(());
        }
        stream.lost_count += u64::from(verdict == Verdict::IsLost);
        room.take(content.size());
        stream.records_count -= 1;
        stream.bytes -= content.size();
        stream.trim.count = stream.trim.count.saturating_sub(1);
        stream.partitions[run.partition].records_count -= 1;
        gone.push(id);
        ControlFlow::Continue(())
    })?;
    stream.partitions[run.partition].front = front;
    for id in gone {
        turn.delete::<Records>(&(number, partition, id));
    }
    Ok(())
}

pub(super) fn sweep_timer(number: StreamNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::StreamSweep,
        due_ms,
        subject: number.0,
        detail: 0,
    }
}
