//! Reading records, and waiting for them (A30).

use super::Patience;
use super::name::position;
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::WAIT_MS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, StreamName};
use flotilla_engine::limits::{READ_RECORDS_DEFAULT, READ_RECORDS_MAX};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, RecordPage, RecordRange};
use flotilla_engine::{RecordId, Rejection, StreamPosition};
use tokio::time::{Instant, sleep_until};

/// Serves `ReadRecords`.
pub(super) async fn read(
    context: &Context,
    asked: v1::ReadRecordsRequest,
    patience: Patience,
) -> Result<v1::ReadRecordsResponse, Refusal> {
    request::within("block_ms", asked.block_ms, 0..=WAIT_MS_MAX)?;
    let namespace = request::namespace(&asked.namespace)?;
    let mut range = range(&asked)?;
    let is_at_tail = range.from == StreamPosition::Tail;
    let stream = request::name(StreamName::new(asked.stream))?;
    let until = patience.until(asked.block_ms);
    // The bell is listened to before the state is read, so that nothing falls between the two.
    let bell = (namespace.clone(), stream.clone());
    let mut bell = context.watchers.streams.watch(bell)?;
    context.gateway.catch_up(patience.deadline).await?;
    loop {
        let found = look(context, (&namespace, &stream), (range, patience.deadline)).await?;
        let (page, has_more) = found.ok_or_else(|| Rejection::StreamNotFound(stream.clone()))?;
        if !page.records.is_empty() || until <= Instant::now() {
            return Ok(message(page, has_more));
        }
        // What the tail was at the beginning it stays for this call.
        range.from = StreamPosition::Id(page.next);
        tokio::select! {
            () = bell.rung() => {}
            () = sleep_until(until) => {}
            () = context.shutdown.cancelled() => {
                // Where the tail was only this call knows: asked again, another node begins at its own,
                // and what came in between would be lost.
                return is_at_tail
                    .then(|| message(page, has_more))
                    .ok_or_else(Refusal::shutting_down);
            }
        }
    }
}

fn message(page: RecordPage, has_more: bool) -> v1::ReadRecordsResponse {
    let records = page.records.into_iter();
    v1::ReadRecordsResponse {
        records: records.map(convert::stream::record).collect(),
        next_start: page.next.to_string(),
        has_more,
    }
}

fn range(asked: &v1::ReadRecordsRequest) -> Result<RecordRange, Refusal> {
    Ok(RecordRange {
        from: position(&asked.start, "start", StreamPosition::Id(RecordId::START))?,
        to: position(&asked.end, "end", StreamPosition::Tail)?,
        partition: asked.partition,
        limit: limit(asked.limit)?,
    })
}

/// How many records a call gives at most.
pub(super) fn limit(asked: u32) -> Result<usize, Refusal> {
    let limit = usize::try_from(asked).unwrap_or(usize::MAX);
    match limit {
        0 => Ok(READ_RECORDS_DEFAULT),
        1..=READ_RECORDS_MAX => Ok(limit),
        _ => {
            let message =
                format!("expected a limit of at most {READ_RECORDS_MAX}, but it is {limit}");
            Err(Refusal::invalid("limit", message))
        }
    }
}

/// A page of what this node has applied, and whether there is another one now.
async fn look(
    context: &Context,
    (namespace, stream): (&Namespace, &StreamName),
    (range, deadline): (RecordRange, Instant),
) -> Result<Option<(RecordPage, bool)>, Refusal> {
    let key = (namespace.clone(), stream.clone());
    let scan = move |reader: &dyn Reader| {
        let read = |range: &RecordRange| -> Result<_, StoreError> {
            view::records(reader, (&key.0, &key.1), range)
        };
        let Some(page) = read(&range)? else {
            return Ok(None);
        };
        let rest = RecordRange {
            from: StreamPosition::Id(page.next),
            limit: 1,
            ..range
        };
        let has_more =
            !page.records.is_empty() && read(&rest)?.is_some_and(|rest| !rest.records.is_empty());
        Ok(Some((page, has_more)))
    };
    context.gateway.scan(Freshness::Stale, deadline, scan).await
}
