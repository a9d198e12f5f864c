//! Writes a turn's history events, one record per run and turn. Beyond the limit, the middle of a history is trimmed,
//! and with it the rows that only trimmed events name (W23, design rules 4 and 13).

mod sweep;

use crate::effect::Effect;
use crate::ids::RunNumber;
use crate::limits::{HISTORY_EVENTS_MAX, HISTORY_HEAD_EVENTS};
use crate::store::StoreError;
use crate::tables::{ActionRunsByRun, Event, History, HistoryCursor, HistoryRecord};
use crate::turn::{LoadedRun, Turn};
use std::ops::ControlFlow;

/// Writes the events that the turn collected for a run, and wakes the run's watchers.
pub(crate) fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    events: Vec<Event>,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    append(turn, run, events)?;
    trim(turn, run.number, &mut run.record.history)?;
    sweep::sweep(turn, run)?;
    turn.effect(Effect::RunChanged {
        namespace: run.record.namespace.clone(),
        run_id: run.record.id.clone(),
        is_open: run.record.status.is_open(),
    });
    Ok(())
}

fn append(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    events: Vec<Event>,
) -> Result<(), StoreError> {
    let first = run.record.history.events_count + 1;
    run.record.history.events_count += events.len() as u64;
    let record = HistoryRecord {
        at_ms: turn.now_ms(),
        raft_index: turn.raft_index(),
        node: turn.node(),
        term: turn.cluster().term,
        payloads_count: run.record.payloads_count,
        events,
    };
    turn.put::<History>(&(run.number, first), record);
    Ok(())
}

/// Drops the oldest records after the head until the history is within its limit.
fn trim(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    cursor: &mut HistoryCursor,
) -> Result<(), StoreError> {
    while kept(cursor) > HISTORY_EVENTS_MAX {
        if cursor.trimming.until == 0 && !end_head(turn, run, cursor)? {
            return Ok(());
        }
        let first = cursor.trimming.until.max(cursor.trimming.after) + 1;
        let Some(record) = turn.get::<History>(&(run, first))? else {
            return Ok(());
        };
        cursor.trimming.until = first + record.events.len() as u64 - 1;
        cursor.trimming.payloads_count = record.payloads_count;
        turn.delete::<History>(&(run, first));
        list_action_runs(turn, run, first, &record);
    }
    Ok(())
}

fn kept(cursor: &HistoryCursor) -> u64 {
    cursor.events_count - (cursor.trimming.until - cursor.trimming.after)
}

/// Lists the action runs that a turn created, as its history is trimmed or is part of the head.
fn list_action_runs(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    first_event: u64,
    record: &HistoryRecord,
) {
    for (position, action_run) in record.created_action_runs() {
        turn.put::<ActionRunsByRun>(&(run, action_run), first_event + position);
    }
}

/// Finds the end of the head, and lists its action runs; false if nothing follows it. Only the first trim looks for it,
/// because records hold different numbers of events.
fn end_head(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    cursor: &mut HistoryCursor,
) -> Result<bool, StoreError> {
    let mut end = None;
    let mut head = Vec::new();
    turn.visit::<History>(&run, |(_, first), record| {
        if first > HISTORY_HEAD_EVENTS {
            end = Some(first - 1);
            return ControlFlow::Break(());
        }
        head.push((first, record));
        ControlFlow::Continue(())
    })?;
    let Some(end) = end else {
        return Ok(false);
    };
    let payloads_count = head.last().map_or(0, |(_, record)| record.payloads_count);
    for (first, record) in head {
        list_action_runs(turn, run, first, &record);
    }
    cursor.trimming.after = end;
    cursor.trimming.swept_until = end;
    cursor.trimming.head_payloads_count = payloads_count;
    cursor.trimming.swept_payloads_count = payloads_count;
    Ok(true)
}
