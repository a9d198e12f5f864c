//! Writing a turn's events: one record per run and turn, the middle trimmed past the bound (W23,
//! design rules 4 and 13).

use crate::effect::Effect;
use crate::ids::RunNumber;
use crate::limits::{HISTORY_EVENTS_MAX, HISTORY_HEAD_EVENTS};
use crate::run::LoadedRun;
use crate::store::StoreError;
use crate::tables::{Event, History, HistoryCursor, HistoryRecord};
use crate::turn::Turn;

/// Writes the events that the turn collected about a run, and tells those who watch it.
pub(crate) fn write(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    events: Vec<Event>,
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let mut cursor = run.record.history;
    append(turn, run.number, &mut cursor, events)?;
    run.record.history = cursor;
    turn.effect(Effect::RunChanged {
        namespace: run.record.namespace.clone(),
        run_id: run.record.id.clone(),
        is_open: run.record.status.is_open(),
    });
    Ok(())
}

fn append(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    cursor: &mut HistoryCursor,
    events: Vec<Event>,
) -> Result<(), StoreError> {
    let first = cursor.events_count + 1;
    cursor.events_count += events.len() as u64;
    let record = HistoryRecord {
        at_ms: turn.now_ms(),
        raft_index: turn.raft_index(),
        node: turn.node(),
        term: turn.cluster()?.term,
        events,
    };
    turn.put::<History>(&(run, first), record);
    trim(turn, run, cursor)
}

/// Drops the oldest records behind the head until the history fits its bound.
fn trim(
    turn: &mut Turn<'_, '_>,
    run: RunNumber,
    cursor: &mut HistoryCursor,
) -> Result<(), StoreError> {
    while kept(cursor) > HISTORY_EVENTS_MAX {
        let first = oldest_behind_head(turn, run, cursor)?;
        let Some(record) = turn.get::<History>(&(run, first))? else {
            return Ok(());
        };
        if cursor.trimmed_until == 0 {
            cursor.trimmed_after = first - 1;
        }
        cursor.trimmed_until = first + record.events.len() as u64 - 1;
        turn.delete::<History>(&(run, first));
    }
    Ok(())
}

fn kept(cursor: &HistoryCursor) -> u64 {
    cursor.events_count - (cursor.trimmed_until - cursor.trimmed_after)
}

/// The sequence number at which the next record to drop begins.
fn oldest_behind_head(
    turn: &Turn<'_, '_>,
    run: RunNumber,
    cursor: &HistoryCursor,
) -> Result<u64, StoreError> {
    if cursor.trimmed_until > 0 {
        return Ok(cursor.trimmed_until + 1);
    }
    // Only the first trim looks for the head's end: records hold different numbers of events.
    let mut found = HISTORY_HEAD_EVENTS + 1;
    turn.visit::<History>(&run, |(_, first), _| {
        found = first;
        if first > HISTORY_HEAD_EVENTS {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    })?;
    Ok(found)
}
