//! Request ids: retrying a command without a natural key is safe (design rule 9).
//!
//! Accepted commands are remembered by time bucket with a compact reply; rejections are judged
//! again. Memory is bounded twice: buckets past the window are swept, and past `REQUESTS_MAX` each
//! new id pushes out the oldest one.

use crate::codec;
use crate::command::Command;
use crate::limits::{REQUEST_BUCKET_MS, REQUEST_WINDOW_MS, REQUESTS_MAX, SWEEP_ROWS_MAX};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::tables::{Cluster, RequestRecord, Requests};
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// A random number that names one request; kept when it is retried or forwarded.
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
    for bucket in live_buckets(turn.now_ms()) {
        if let Some(record) = turn.get::<Requests>(&(bucket, id.0))? {
            if record.fingerprint != fingerprint(command) {
                return Err(Rejection::RequestIdReused.into());
            }
            return Ok(Some(record.reply.clone()));
        }
    }
    Ok(None)
}

/// Remembers the reply to an accepted command.
pub(crate) fn remember(turn: &mut Turn<'_, '_>, command: &Command, reply: &Reply) -> Outcome<()> {
    let Some(id) = command.request_id else {
        return Ok(());
    };
    let mut cluster = turn.cluster()?;
    if cluster.requests_count >= REQUESTS_MAX {
        forget_oldest(turn, 1)?;
        cluster = turn.cluster()?;
    }
    cluster.requests_count += 1;
    turn.put::<Cluster>(&(), cluster);
    let record = RequestRecord {
        fingerprint: fingerprint(command),
        reply: reply.clone(),
    };
    turn.put::<Requests>(&(bucket_of(turn.now_ms()), id.0), record);
    Ok(())
}

impl SweepRequests {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> Outcome<Reply> {
        let oldest_live = live_buckets(turn.now_ms()).last().unwrap_or(0);
        let rows = turn.list::<Requests>(&(), SWEEP_ROWS_MAX)?;
        let expired = rows
            .iter()
            .filter(|((bucket, _), _)| *bucket < oldest_live)
            .count();
        forget_oldest(turn, expired)?;
        Ok(Reply::Done)
    }
}

/// Whether `bucket` is past the window at `now_ms`: a driver then proposes a sweep.
#[must_use]
pub(crate) fn is_expired(bucket: u64, now_ms: u64) -> bool {
    live_buckets(now_ms).all(|live| bucket < live)
}

fn forget_oldest(turn: &mut Turn<'_, '_>, count: usize) -> Result<(), StoreError> {
    let rows = turn.list::<Requests>(&(), count)?;
    let mut cluster = turn.cluster()?;
    for (key, _) in rows {
        turn.delete::<Requests>(&key);
        cluster.requests_count = cluster.requests_count.saturating_sub(1);
    }
    turn.put::<Cluster>(&(), cluster);
    Ok(())
}

fn bucket_of(now_ms: u64) -> u64 {
    now_ms / REQUEST_BUCKET_MS
}

/// The buckets that may hold an id of the window, newest first.
fn live_buckets(now_ms: u64) -> impl Iterator<Item = u64> {
    let newest = bucket_of(now_ms);
    let oldest = bucket_of(now_ms.saturating_sub(REQUEST_WINDOW_MS));
    (oldest..=newest).rev()
}

fn fingerprint(command: &Command) -> u64 {
    codec::fingerprint(&codec::encode(&(
        &command.namespace,
        command.body.as_asked().as_ref(),
    )))
}
