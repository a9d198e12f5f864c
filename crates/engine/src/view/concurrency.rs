//! What a run waits for when a concurrency limit keeps it from beginning (W84).

use crate::limits::CONCURRENCY_LISTED_MAX;
use crate::run::shown_concurrency_key;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ConcurrencyHolders, ConcurrencyKeys, ConcurrencyPlace, ConcurrencyQueue, Quarantine,
    QuarantinedKind, RunRecord, Runs, range_from, read, visit,
};
use std::ops::ControlFlow;

/// The maximum number of runs counted ahead of a waiting run.
const COUNTED_MAX: usize = 100;

/// Describes which key a waiting run waits for first, and which runs hold it; `None` for a run that does not wait.
pub(super) fn waiting_detail(
    reader: &dyn Reader,
    run: &RunRecord,
) -> Result<Option<String>, StoreError> {
    for place in run.awaited_keys().unwrap_or_default() {
        if let Some(detail) = blocked(reader, place)? {
            return Ok(Some(detail));
        }
    }
    Ok(None)
}

/// Describes why a place is not free; `None` if the run comes next there and the key is not at its limit.
fn blocked(reader: &dyn Reader, place: &ConcurrencyPlace) -> Result<Option<String>, StoreError> {
    let Some(record) = read::<ConcurrencyKeys>(reader, &place.key)? else {
        return Ok(None);
    };
    let (limit, held) = (place.limit, record.holders_count);
    let from = (place.key, record.first_waiting);
    let range = range_from::<ConcurrencyQueue>(&place.key, &from);
    let before = count_before(reader, &range, place.position)?;
    if before == 0 && held < limit {
        return Ok(None);
    }
    let mut holders = Vec::new();
    let from = (place.key, record.first_holder);
    let range = range_from::<ConcurrencyHolders>(&place.key, &from);
    visit::<ConcurrencyHolders>(reader, &range, Order::Ascending, |_, holder| {
        holders.push(holder);
        match holders.len() < CONCURRENCY_LISTED_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let mut ids = Vec::new();
    for holder in holders {
        let Some(run) = read::<Runs>(reader, &holder)? else {
            continue;
        };
        let quarantined = read::<Quarantine>(reader, &(QuarantinedKind::Run, holder.0))?;
        let note = quarantined.map_or("", |_| " (quarantined)");
        ids.push(format!("{}{note}", run.id));
    }
    let key = shown_concurrency_key(&record.key);
    let mut detail = format!("waits for concurrency key {key} (limit {limit})");
    if !ids.is_empty() {
        let more = if held as usize > ids.len() {
            ", …"
        } else {
            ""
        };
        detail.push_str(&format!(", held by {}{more}", ids.join(", ")));
    }
    match before {
        0 => {}
        1 => detail.push_str(", behind 1 waiting run"),
        COUNTED_MAX => detail.push_str(&format!(", behind {before} or more waiting runs")),
        _ => detail.push_str(&format!(", behind {before} waiting runs")),
    }
    Ok(Some(detail))
}

/// How many runs in a queue come before a position, at most [`COUNTED_MAX`].
fn count_before(reader: &dyn Reader, queue: &KeyRange, position: u64) -> Result<usize, StoreError> {
    let mut count = 0;
    visit::<ConcurrencyQueue>(reader, queue, Order::Ascending, |(_, found), _| {
        if found >= position {
            return ControlFlow::Break(());
        }
        count += 1;
        match count < COUNTED_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(count)
}
