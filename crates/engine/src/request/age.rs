//! Request ids by age.

use super::usage;
use crate::ids::RequestId;
use crate::limits::{REQUEST_AGE_MS_MAX, REQUEST_RETRY_MS, REQUEST_WINDOW_MS};
use crate::store::StoreError;
use crate::tables::{RequestAgeRecord, RequestAges, Requests};
use crate::turn::Turn;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Whether the window of an id accepted at `at_ms` has passed at `now_ms`: the id is free again, and a driver proposes
/// a sweep.
#[must_use]
pub(crate) fn is_past(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) >= REQUEST_WINDOW_MS
}

/// The age of an id at `now_ms`, if its request comes so late that an earlier copy may have been accepted and forgotten.
/// In milliseconds.
pub(super) fn too_late(id: RequestId, now_ms: u64) -> Option<u64> {
    let age_ms = now_ms.checked_sub(id.made_at_ms()?)?;
    (age_ms > REQUEST_RETRY_MS && age_ms <= REQUEST_AGE_MS_MAX).then_some(age_ms)
}

/// The ids of an entry.
pub(super) struct Accepted {
    /// The entry's index in the log.
    index: u64,
    record: Arc<RequestAgeRecord>,
}

/// The oldest ids, if they are at least `age_ms` old.
pub(super) fn oldest_past(
    turn: &Turn<'_, '_>,
    age_ms: u64,
) -> Result<Option<Accepted>, StoreError> {
    let mut oldest = None;
    let first = turn.cluster().requests_first;
    turn.visit_from::<RequestAges>(&(), &first, |index, record| {
        oldest = Some(Accepted { index, record });
        ControlFlow::Break(())
    })?;
    let now_ms = turn.now_ms();
    Ok(oldest.filter(|oldest| now_ms.saturating_sub(oldest.record.at_ms) >= age_ms))
}

/// Forgets ids that are at least `age_ms` old, the oldest first, until `is_enough` or at least `ids_max` are forgotten. The
/// ids of one entry go together.
pub(super) fn forget_past(
    turn: &mut Turn<'_, '_>,
    age_ms: u64,
    ids_max: usize,
    is_enough: impl Fn(&Turn<'_, '_>) -> bool,
) -> Result<(), StoreError> {
    let mut count = 0;
    while count < ids_max && !is_enough(turn) {
        let Some(oldest) = oldest_past(turn, age_ms)? else {
            break;
        };
        count += forget(turn, &oldest)?;
    }
    Ok(())
}

/// Forgets the ids of an entry, and returns their number.
fn forget(turn: &mut Turn<'_, '_>, accepted: &Accepted) -> Result<usize, StoreError> {
    let Accepted { index, record } = accepted;
    let mut count = 0;
    for (scope, accepted) in &record.by_scope {
        for id in &accepted.ids {
            // A younger request may have reused an id that was free again.
            let key = (scope.clone(), *id);
            let remembered = turn.get::<Requests>(&key)?;
            if remembered.is_some_and(|request| request.accepted_by == *index) {
                turn.delete::<Requests>(&key);
            }
        }
        count += accepted.ids.len();
        usage::subtract(turn, scope, accepted.usage())?;
    }
    turn.delete::<RequestAges>(index);
    turn.cluster_mut().requests_first = index + 1;
    Ok(count)
}
