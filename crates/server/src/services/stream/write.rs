//! Appending and trimming records (A30).

use super::name::record_id;
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::trim_stream_request::To;
use flotilla_engine::ids::{PartitionKey, StreamName};
use flotilla_engine::{AppendRecords, Command, NewRecord, RecordId, TrimStream, TrimTo, reply};
use std::iter::successors;
use tokio::time::Instant;

/// Serves `AppendRecords`.
pub(super) async fn append(
    context: &CallContext,
    request: v1::AppendRecordsRequest,
    deadline: Instant,
) -> Result<v1::AppendRecordsResponse, Refusal> {
    let records: Vec<NewRecord> = request
        .records
        .into_iter()
        .map(new_record)
        .collect::<Result<_, _>>()?;
    let count = records.len();
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: AppendRecords {
            stream: request::name("stream", StreamName::new(request.stream))?,
            records,
        },
    };
    let reply::RecordsAppended { first } = context.gateway.submit(command, deadline).await?;
    {
        let ids = successors(Some(first), |id| Some(RecordId::next(*id)));
        Ok(v1::AppendRecordsResponse {
            ids: ids.take(count).map(|id| id.to_string()).collect(),
        })
    }
}

fn new_record(request: v1::NewRecord) -> Result<NewRecord, Refusal> {
    Ok(NewRecord {
        payload: Vec::from(request.payload).into(),
        headers: request.headers,
        key: request::optional("partition_key", request.partition_key, PartitionKey::new)?,
        partition: request.partition,
    })
}

/// Serves `TrimStream`.
pub(super) async fn trim(
    context: &CallContext,
    request: v1::TrimStreamRequest,
    deadline: Instant,
) -> Result<v1::TrimStreamResponse, Refusal> {
    let to = match request.to {
        Some(To::KeepRecords(count)) => TrimTo::Newest(count),
        Some(To::BeforeId(id)) => TrimTo::Before(record_id(&id, "before_id")?),
        None => {
            let message = "expected which records to trim, but neither a number nor an id is given";
            return Err(Refusal::invalid("to", message));
        }
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: TrimStream {
            stream: request::name("name", StreamName::new(request.name))?,
            to,
        },
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::TrimStreamResponse {})
}
