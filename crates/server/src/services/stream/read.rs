//! Reads records, and waits for them (A30).

use super::name::position;
use crate::access::CallContext;
use crate::convert;
use crate::deadline::WaitBounds;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::WAIT_MS_MAX;
use crate::request;
use crate::watch;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, StreamName};
use flotilla_engine::limits::{READ_RECORDS_DEFAULT, READ_RECORDS_MAX};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, RecordPage, RecordRange};
use flotilla_engine::{RecordId, Rejection, StreamPosition};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Serves `ReadRecords`.
pub(super) async fn read(
    context: &CallContext,
    request: v1::ReadRecordsRequest,
    wait_bounds: WaitBounds,
) -> Result<v1::ReadRecordsResponse, Refusal> {
    request::within("block_ms", request.block_ms, 0..=WAIT_MS_MAX)?;
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let mut range = range(&request)?;
    let is_at_tail = range.from == StreamPosition::Tail;
    let stream = request::name("stream", StreamName::new(request.stream))?;
    let wait = wait_bounds.wait(Duration::from_millis(request.block_ms));
    // The watch begins before the read, so that no change is missed between the two.
    let end_watch = (namespace.clone(), stream.clone());
    let mut end_watch = context.watchers.streams.watch(&namespace, end_watch)?;
    gateway.catch_up(wait_bounds.deadline).await?;
    loop {
        let section = Section {
            namespace: namespace.clone(),
            stream: stream.clone(),
            range,
        };
        let found = look(context, section, wait.read_deadline).await?;
        let (page, has_more) = found.ok_or_else(|| Rejection::StreamNotFound(stream.clone()))?;
        if !page.records.is_empty() || wait.until <= Instant::now() {
            return Ok(message(page, has_more));
        }
        // The position of the tail is fixed for this call.
        range.from = StreamPosition::Id(page.next);
        tokio::select! {
            () = end_watch.notified() => {}
            () = sleep_until(wait.until) => {}
            refusal = watch::interrupted(context) => {
                // Only this call knows where the tail was: a retry on another node would start at
                // that node's tail and lose the records in between.
                return is_at_tail
                    .then(|| message(page, has_more))
                    .ok_or(refusal);
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

fn range(request: &v1::ReadRecordsRequest) -> Result<RecordRange, Refusal> {
    Ok(RecordRange {
        from: position(&request.start, "start", StreamPosition::Id(RecordId::START))?,
        to: position(&request.end, "end", StreamPosition::Tail)?,
        partition: request.partition,
        limit: limit(request.limit)?,
    })
}

/// The maximum of records per call.
pub(super) fn limit(request: u32) -> Result<usize, Refusal> {
    let limit = usize::try_from(request).unwrap_or(usize::MAX);
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

/// The part of a stream that a call reads.
struct Section {
    namespace: Namespace,
    stream: StreamName,
    range: RecordRange,
}

/// A page of what this node has applied, and whether more is available now.
async fn look(
    context: &CallContext,
    section: Section,
    deadline: Instant,
) -> Result<Option<(RecordPage, bool)>, Refusal> {
    let Section {
        namespace,
        stream,
        range,
    } = section;
    let gateway = context.gateway.of(&namespace);
    let scan = move |reader: &dyn Reader| {
        let read = |range: &RecordRange| -> Result<_, StoreError> {
            view::records(reader, &namespace, &stream, range)
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
    gateway.scan(Freshness::Stale, deadline, scan).await
}
