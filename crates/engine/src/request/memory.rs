//! Remembering accepted commands and recognizing repeated ones.

use super::age::{forget_oldest, is_past, oldest_past};
use crate::codec;
use crate::command::{Admission, Command};
use crate::limits::{
    REQUEST_RETRY_MS, REQUESTS_BYTES_MAX, REQUESTS_MAX, REQUESTS_RESERVED_PART, SWEEP_ROWS_MAX,
};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{
    Cluster, ClusterRecord, RequestAgeRecord, RequestAges, RequestRecord, Requests, encode_record,
};
use crate::turn::{Turn, TurnResult};

/// The remembered reply to an earlier accepted command with the same id.
pub(crate) fn remembered(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<Option<Reply>> {
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

/// Rejects a command whose reply could not be remembered: a retry would apply it twice.
pub(crate) fn admit(turn: &mut Turn<'_, '_>, command: &Command) -> TurnResult<()> {
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
    Err(Rejection::RequestIdLimitExceeded.into())
}

/// Remembers the reply to an accepted command.
pub(crate) fn remember(
    turn: &mut Turn<'_, '_>,
    command: &Command,
    reply: &Reply,
) -> TurnResult<()> {
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

/// The limits on remembered replies, without the reserve.
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

fn fingerprint(command: &Command) -> u64 {
    codec::fingerprint(&codec::encode(&(
        &command.namespace,
        command.body.as_asked().as_ref(),
    )))
}
