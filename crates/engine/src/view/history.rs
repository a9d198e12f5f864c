//! Reads a run's history (W23).

use super::event::{EventView, describe, trimmed};
use super::payload;
use super::run::find_run;
use super::run_definitions::RunDefinitions;
use crate::ids::{Namespace, RunId};
use crate::message::cut;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{History, RunRecord, encode_key, visit};
use std::ops::ControlFlow;

/// A part of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPage {
    /// Oldest first.
    pub events: Vec<EventView>,
    /// Whether there are more behind the last one.
    pub has_more: bool,
    /// The run's last sequence number.
    pub events_count: u64,
}

/// The part of a history that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRange {
    /// The sequence number after which it begins; 0 for the whole history.
    pub after_seq: u64,
    /// The maximum number of events.
    pub limit: usize,
}

/// The events of a run that the range has.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn history(
    reader: &dyn Reader,
    namespace: &Namespace,
    run_id: &RunId,
    range: HistoryRange,
) -> Result<Option<HistoryPage>, StoreError> {
    let HistoryRange { after_seq, limit } = range;
    let Some((number, run)) = find_run(reader, namespace, run_id)? else {
        return Ok(None);
    };
    let definitions = RunDefinitions::of(reader, &run, after_seq)?;
    let cursor = &run.history;
    let mut events: Vec<EventView> = Vec::new();
    let is_in_gap = after_seq >= cursor.trimming.after && after_seq < cursor.trimming.until;
    let first_record = first_record(reader, number, after_seq)?;
    let range = KeyRange {
        from: encode_key::<History>(&(number, first_record)),
        to: encode_key::<History>(&(number, u64::MAX)),
    };
    visit::<History>(reader, &range, Order::Ascending, |(_, first), record| {
        if first == cursor.trimming.until + 1
            && cursor.trimming.until > 0
            && (is_in_gap || after_seq < cursor.trimming.after)
        {
            events.push(trimmed(cursor, &record));
        }
        for (seq, event) in (first..).zip(&record.events) {
            if seq > after_seq {
                events.push(describe(definitions.at(seq), event, seq, &record));
            }
        }
        if events.len() > limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    show_input(reader, &run, &mut events)?;
    let has_more = events.len() > limit;
    events.truncate(limit);
    Ok(Some(HistoryPage {
        events,
        has_more,
        events_count: cursor.events_count,
    }))
}

/// The manual's detail of `workflow_started` is the input; a long one is truncated.
fn show_input(
    reader: &dyn Reader,
    run: &RunRecord,
    events: &mut [EventView],
) -> Result<(), StoreError> {
    let Some(started) = events.first_mut().filter(|event| event.seq == 1) else {
        return Ok(());
    };
    started.detail = cut(payload(reader, run.input)?.as_str());
    Ok(())
}

/// The key of the record that holds the event behind `after_seq`, or of one before it.
fn first_record(
    reader: &dyn Reader,
    number: crate::ids::RunNumber,
    after_seq: u64,
) -> Result<u64, StoreError> {
    let range = KeyRange {
        from: encode_key::<History>(&(number, 0)),
        to: encode_key::<History>(&(number, after_seq.saturating_add(2))),
    };
    let mut found = 0;
    visit::<History>(reader, &range, Order::Descending, |(_, first), _| {
        found = first;
        ControlFlow::Break(())
    })?;
    Ok(found)
}
