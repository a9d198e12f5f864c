//! Request ids: retrying a command without a natural key is safe (design rule 9).
//!
//! Accepted commands are remembered with a compact reply; rejections are judged again. Ids are
//! forgotten in the order of their age: those past the window by sweeps, and at the bound in count or
//! bytes those older than the time in which clients still retry. A younger one is never forgotten:
//! where nothing older is left to give way, new work is refused until there is.

use crate::codec;
use crate::command::{Admission, Command};
use crate::ids::Namespace;
use crate::limits::{
    REQUEST_RETRY_MS, REQUEST_WINDOW_MS, REQUESTS_BYTES_MAX, REQUESTS_MAX, REQUESTS_RESERVED_PART,
    SWEEP_ROWS_MAX,
};
use crate::rejection::Rejection;
use crate::reply::{Done, Reply};
use crate::store::StoreError;
use crate::tables::{
    Cluster, ClusterRecord, RequestAgeRecord, RequestAges, RequestRecord, Requests, encode_record,
};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A number that names one request and no other, best a UUID of version 7 (ADR 0023); kept when it is
/// retried or forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestId(pub u128);

/// Forgets request ids whose window has passed, in bounded pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRequests {}

/// The reply to a command that was accepted before.
pub(crate) fn remembered(turn: &mut Turn<'_, '_>, command: &Command) -> Outcome<Option<Reply>> {
    let Some(id) = command.request_id else {
        return Ok(None);
    };
    let Some(record) = turn.get::<Requests>(&id.0)? else {
        return Ok(None);
    };
    if is_past(record.at_ms, turn.now_ms()) {
        return Ok(None);
    }
    if record.fingerprint != fingerprint(command) {
        return Err(Rejection::RequestIdReused.into());
    }
    Ok(Some(record.reply.clone()))
}

/// Refuses a command whose reply could not be remembered: carried out, its retry would double it.
pub(crate) fn admit(turn: &mut Turn<'_, '_>, command: &Command) -> Outcome<()> {
    if command.request_id.is_none() {
        return Ok(());
    }
    let cluster = turn.cluster()?;
    let mut bounds = Bounds::INTAKE;
    if let Admission::Progress = command.body.admission() {
        bounds = bounds.with_reserve();
    }
    if bounds.have_room(&cluster) || oldest_past(turn, &cluster, REQUEST_RETRY_MS)?.is_some() {
        return Ok(());
    }
    Err(Rejection::RequestsTooMany.into())
}

/// Remembers the reply to an accepted command.
pub(crate) fn remember(turn: &mut Turn<'_, '_>, command: &Command, reply: &Reply) -> Outcome<()> {
    let Some(id) = command.request_id else {
        return Ok(());
    };
    let mut cluster = turn.cluster()?;
    let bounds = Bounds::INTAKE;
    for _ in 0..SWEEP_ROWS_MAX {
        if bounds.have_room(&cluster) {
            break;
        }
        let Some(oldest) = oldest_past(turn, &cluster, REQUEST_RETRY_MS)? else {
            break;
        };
        forget_oldest(turn, &mut cluster, &oldest)?;
    }
    let sequence = cluster.requests_first + cluster.requests_count;
    let at_ms = turn.now_ms();
    let record = RequestRecord {
        sequence,
        at_ms,
        fingerprint: fingerprint(command),
        reply: reply.clone(),
    };
    let mut age = RequestAgeRecord {
        id: id.0,
        at_ms,
        bytes: KEYS_BYTES,
    };
    let records =
        encode_record::<Requests>(&record).len() + encode_record::<RequestAges>(&age).len();
    age.bytes += records as u64;
    cluster.requests_count += 1;
    cluster.requests_bytes += age.bytes;
    turn.put::<Requests>(&id.0, record);
    turn.put::<RequestAges>(&sequence, age);
    turn.put::<Cluster>(&(), cluster);
    Ok(())
}

/// How much is remembered at once, without the reserve.
struct Bounds {
    count: u64,
    bytes: u64,
}

impl Bounds {
    /// For new work.
    const INTAKE: Self = Self {
        count: REQUESTS_MAX,
        bytes: REQUESTS_BYTES_MAX,
    };

    /// What lets open work end has room beyond (design rule 2).
    fn with_reserve(self) -> Self {
        Self {
            count: self.count + self.count / REQUESTS_RESERVED_PART,
            bytes: self.bytes + self.bytes / REQUESTS_RESERVED_PART,
        }
    }

    fn have_room(&self, cluster: &ClusterRecord) -> bool {
        cluster.requests_count < self.count && cluster.requests_bytes < self.bytes
    }
}

/// The keys of the two rows of an id, their tables' numbers included.
const KEYS_BYTES: u64 = (size_of::<u128>() + size_of::<u64>() + 2) as u64;

impl SweepRequests {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        let mut cluster = turn.cluster()?;
        for _ in 0..SWEEP_ROWS_MAX {
            let Some(oldest) = oldest_past(turn, &cluster, REQUEST_WINDOW_MS)? else {
                break;
            };
            forget_oldest(turn, &mut cluster, &oldest)?;
        }
        turn.put::<Cluster>(&(), cluster);
        Ok(Done {})
    }
}

/// Whether an id that was accepted at `at_ms` is past the window at `now_ms`: it is free again, and
/// a driver then proposes a sweep.
#[must_use]
pub(crate) fn is_past(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) >= REQUEST_WINDOW_MS
}

/// The age of the oldest id, if that is at least `age_ms`.
fn oldest_past(
    turn: &mut Turn<'_, '_>,
    cluster: &ClusterRecord,
    age_ms: u64,
) -> Result<Option<Arc<RequestAgeRecord>>, StoreError> {
    let now_ms = turn.now_ms();
    let oldest = turn.get::<RequestAges>(&cluster.requests_first)?;
    Ok(oldest.filter(|oldest| now_ms.saturating_sub(oldest.at_ms) >= age_ms))
}

fn forget_oldest(
    turn: &mut Turn<'_, '_>,
    cluster: &mut ClusterRecord,
    oldest: &RequestAgeRecord,
) -> Result<(), StoreError> {
    let sequence = cluster.requests_first;
    // An id that was free again may have been taken by a younger request since.
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

fn fingerprint(command: &Command) -> u64 {
    codec::fingerprint(&codec::encode(&(
        &command.namespace,
        command.body.as_asked().as_ref(),
    )))
}
