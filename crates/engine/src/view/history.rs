//! Reads a run's history (W23).

use super::event::{EventView, describe, trimmed};
use super::page::PageBudget;
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

/// The events of a run that the range has, as many as fit into a page.
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
    let mut page = HistoryPage {
        events: Vec::new(),
        has_more: false,
        events_count: cursor.events_count,
    };
    let mut budget = PageBudget::new(limit);
    let is_in_gap = after_seq >= cursor.trimming.after && after_seq < cursor.trimming.until;
    let first_record = first_record(reader, number, after_seq)?;
    let range = KeyRange {
        from: encode_key::<History>(&(number, first_record)),
        to: encode_key::<History>(&(number, u64::MAX)),
    };
    visit::<History>(reader, &range, Order::Ascending, |(_, first), record| {
        let is_behind_gap = first == cursor.trimming.until + 1
            && cursor.trimming.until > 0
            && (is_in_gap || after_seq < cursor.trimming.after);
        let gap = is_behind_gap.then(|| trimmed(cursor, &record));
        let events = (first..).zip(&record.events);
        let wanted = events.filter(|(seq, _)| *seq > after_seq);
        let wanted = wanted.map(|(seq, event)| describe(definitions.at(seq), event, seq, &record));
        for event in gap.into_iter().chain(wanted) {
            page.has_more = !budget.take(event.bytes());
            if page.has_more {
                return ControlFlow::Break(());
            }
            page.events.push(event);
        }
        ControlFlow::Continue(())
    })?;
    show_input(reader, &run, &mut page.events)?;
    Ok(Some(page))
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
