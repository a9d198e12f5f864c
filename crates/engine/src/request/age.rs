//! Request ids by age.

use crate::limits::REQUEST_WINDOW_MS;
use crate::store::StoreError;
use crate::tables::{ClusterRecord, RequestAgeRecord, RequestAges, RequestRecord, Requests};
use crate::turn::Turn;
use std::sync::Arc;

/// Whether the window of an id accepted at `at_ms` has passed at `now_ms`: the id is free again, and a driver proposes
/// a sweep.
#[must_use]
pub(crate) fn is_past(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) >= REQUEST_WINDOW_MS
}

/// The age of the oldest id, if that is at least `age_ms`.
pub(super) fn oldest_past(
    turn: &mut Turn<'_, '_>,
    cluster: &ClusterRecord,
    age_ms: u64,
) -> Result<Option<Arc<RequestAgeRecord>>, StoreError> {
    let now_ms = turn.now_ms();
    let oldest = turn.get::<RequestAges>(&cluster.requests_first)?;
    Ok(oldest.filter(|oldest| now_ms.saturating_sub(oldest.at_ms) >= age_ms))
}

pub(super) fn forget_oldest(
    turn: &mut Turn<'_, '_>,
    cluster: &mut ClusterRecord,
    oldest: &RequestAgeRecord,
) -> Result<(), StoreError> {
    let sequence = cluster.requests_first;
    // A younger request may have reused an id that was free again.
    let is_own = |record: &RequestRecord| record.sequence == sequence;
    if turn
        .get::<Requests>(&oldest.id)?
        .is_some_and(|record| is_own(&record))
    {
        turn.delete::<Requests>(&oldest.id);
    }
    turn.delete::<RequestAges>(&sequence);
    cluster.requests_first += 1;
    cluster.requests_count -= 1;
    cluster.requests_bytes -= oldest.bytes;
    Ok(())
}
