//! Returned records: redelivery, or the dead-letter stream after too many deliveries (A31).

use super::{NumberedGroup, arm, dead_letter_name, lease, waiting};
use crate::message::cut;
use crate::store::StoreError;
use crate::stream::{self, NewContent, RecordId};
use crate::tables::{DeliveredRecord, GroupRecord, Records, RedeliveryRecord};
use crate::turn::Turn;

/// Why a record returns.
#[derive(Clone, Copy)]
pub(super) enum Reason {
    /// The consumer nacked it.
    Refused {
        /// When it may be redelivered, in milliseconds.
        due_ms: u64,
    },
    /// Its ack deadline passed or its process is gone; the record itself may be the cause.
    Expired,
    /// The consumer left voluntarily: the delivery does not count.
    Left,
}

/// Returns a record that is no longer in a delivery. True if it went to the dead-letter stream.
pub(super) fn return_record(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
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
        let dead = DeadRecord {
            partition: record.partition,
            id: record.id,
            deliveries: attempts,
            reason: None,
        };
        move_to_dead_letters(turn, &mut target.1, &dead)?;
        return Ok(true);
    }
    let waiting = RedeliveryRecord {
        partition: record.partition,
        attempts,
        due_ms,
    };
    waiting::put(turn, target, record.id, waiting);
    if due_ms > now_ms {
        arm(turn, target, due_ms);
    }
    Ok(false)
}

/// Whether a returned record has reached the maximum number of deliveries.
pub(super) fn is_last(group: &GroupRecord, record: &DeliveredRecord, reason: Reason) -> bool {
    let max_deliveries = group.settings.max_deliveries();
    max_deliveries > 0 && attempts(record, reason) >= max_deliveries
}

/// The number of deliveries of a record that count.
fn attempts(record: &DeliveredRecord, reason: Reason) -> u32 {
    match reason {
        Reason::Refused { .. } | Reason::Expired => record.attempt,
        Reason::Left => record.attempt - 1,
    }
}

/// A record that goes to the dead-letter stream.
pub(crate) struct DeadRecord<'a> {
    pub(crate) partition: u32,
    pub(crate) id: RecordId,
    /// The number of deliveries that failed.
    pub(crate) deliveries: u32,
    /// Why it is moved, if known.
    pub(crate) reason: Option<&'a str>,
}

/// Moves a record to the dead-letter stream. Its headers state where it comes from and, if known, why it was moved.
pub(crate) fn move_to_dead_letters(
    turn: &mut Turn<'_, '_>,
    group: &mut GroupRecord,
    dead: &DeadRecord<'_>,
) -> Result<(), StoreError> {
    let DeadRecord {
        partition,
        id,
        deliveries,
        reason,
    } = *dead;
    let source = stream::load(turn, group.stream)?;
    let Some(content) = turn.get::<Records>(&(group.stream, partition, id))? else {
        group.lost_count += 1;
        return Ok(());
    };
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
        hops: content.hops,
    };
    let name = dead_letter_name(&source.name, &group.name);
    let name = name.expect("a group is created only if this is a name");
    if stream::append(turn, &source.namespace, &name, new)? {
        group.dead_count += 1;
    } else {
        group.lost_count += 1;
    }
    Ok(())
}
