//! A record comes back unprocessed: it goes out again, or to the dead-letter stream (A31).

use super::{Numbered, arm, dead_letter_name, lease, waiting};
use crate::quarantine::cut;
use crate::store::StoreError;
use crate::stream::{self, NewContent, RecordId};
use crate::tables::{DeliveredRecord, GroupRecord, Records, RedeliveryRecord};
use crate::turn::Turn;

/// Why a record comes back.
#[derive(Clone, Copy)]
pub(super) enum Reason {
    /// Its consumer could not process it.
    Refused {
        /// When it may go out again, in milliseconds.
        due_ms: u64,
    },
    /// Its consumer did not settle it in time, or its process is gone: the record may be why.
    Expired,
    /// Its consumer left of its own accord: the delivery does not count.
    Left,
}

/// Takes a record back that is no longer in a delivery. True when it went to the dead-letter stream.
pub(super) fn give_back(
    turn: &mut Turn<'_, '_>,
    target: &mut Numbered,
    record: &DeliveredRecord,
    reason: Reason,
) -> Result<bool, StoreError> {
    let now_ms = turn.now_ms();
    let due_ms = match reason {
        Reason::Refused { due_ms } => due_ms,
        Reason::Expired | Reason::Left => now_ms,
    };
    let attempts = attempts(record, reason);
    lease::land(&mut target.1, record);
    if is_last(&target.1, record, reason) {
        bury(
            turn,
            target,
            (record.partition, record.id),
            (attempts, None),
        )?;
        return Ok(true);
    }
    let waiting = RedeliveryRecord {
        partition: record.partition,
        attempts,
        due_ms,
    };
    waiting::put(turn, target, (record.id, waiting));
    if due_ms > now_ms {
        arm(turn, target, due_ms);
    }
    Ok(false)
}

/// Whether a record that comes back was delivered as often as it may be.
pub(super) fn is_last(group: &GroupRecord, record: &DeliveredRecord, reason: Reason) -> bool {
    let deliveries_max = group.settings.deliveries_max();
    deliveries_max > 0 && attempts(record, reason) >= deliveries_max
}

/// Deliveries of a record that count.
fn attempts(record: &DeliveredRecord, reason: Reason) -> u32 {
    match reason {
        Reason::Refused { .. } | Reason::Expired => record.attempt,
        Reason::Left => record.attempt - 1,
    }
}

/// Moves a record to the dead-letter stream, with where it comes from in its headers, and why it went
/// there, where that is known.
pub(crate) fn bury(
    turn: &mut Turn<'_, '_>,
    (_, group): &mut Numbered,
    (partition, id): (u32, RecordId),
    (deliveries, reason): (u32, Option<&str>),
) -> Result<(), StoreError> {
    let source = stream::load(turn, group.stream)?;
    let Some(content) = turn.get::<Records>(&(group.stream, partition, id))? else {
        group.lost_count += 1;
        return Ok(());
    };
    group.dead_count += 1;
    let mut headers = content.headers.clone();
    headers.extend([
        ("flo-stream".to_owned(), source.name.to_string()),
        ("flo-group".to_owned(), group.name.to_string()),
        ("flo-record-id".to_owned(), id.to_string()),
        ("flo-deliveries".to_owned(), deliveries.to_string()),
    ]);
    headers.extend(reason.map(|reason| ("flo-reason".to_owned(), cut(reason))));
    let new = NewContent {
        payload: content.payload.clone(),
        headers,
        key: content.key.clone(),
    };
    let name = dead_letter_name(&source.name, &group.name);
    let name = name.expect("a group is created only if this is a name");
    stream::append(turn, (&source.namespace, &name), new)
}
