//! Creating, reading about and deleting streams (A30).

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::StreamName;
use flotilla_engine::limits::STREAM_BYTES_DEFAULT;
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, CreateStream, DeleteStream, Rejection, reply, view};
use flotilla_engine::{Retention, StreamSettings};
use std::num::NonZeroU32;
use tokio::time::Instant;

/// Serves `CreateStream`.
pub(super) async fn create(
    context: &CallContext,
    request: v1::CreateStreamRequest,
    deadline: Instant,
) -> Result<v1::CreateStreamResponse, Refusal> {
    let settings = settings(&request)?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: CreateStream {
            stream: request::name("name", StreamName::new(request.name))?,
            settings,
        },
    };
    let reply::StreamCreated { is_new } = context.gateway.submit(command, deadline).await?;
    Ok(v1::CreateStreamResponse { created: is_new })
}

fn settings(request: &v1::CreateStreamRequest) -> Result<StreamSettings, Refusal> {
    let retention = request.retention.unwrap_or_default();
    let bytes_limit = request.hard_limit_bytes.unwrap_or(STREAM_BYTES_DEFAULT);
    request::within("hard_limit_bytes", bytes_limit, 1..=u64::MAX)?;
    Ok(StreamSettings {
        partitions: NonZeroU32::new(request.partitions).unwrap_or(NonZeroU32::MIN),
        retention: Retention {
            count_max: retention.max_records,
            max_age_ms: retention.max_age_ms,
            max_bytes: retention.max_bytes,
        },
        bytes_limit,
    })
}

/// Serves `GetStream`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetStreamRequest,
    deadline: Instant,
) -> Result<v1::StreamInfo, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = request::name("name", StreamName::new(request.name))?;
    let look_up = |reader: &dyn Reader| view::stream(reader, &namespace, &name);
    let found = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    Ok(convert::stream::message(
        found.ok_or(Rejection::StreamNotFound(name))?,
    ))
}

/// Serves `ListStreams`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListStreamsRequest,
    deadline: Instant,
) -> Result<v1::ListStreamsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let list = move |reader: &dyn Reader| view::streams(reader, &namespace, page.range());
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    Ok(v1::ListStreamsResponse {
        items: found
            .items
            .into_iter()
            .map(convert::stream::message)
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `DeleteStream`.
pub(super) async fn delete(
    context: &CallContext,
    request: v1::DeleteStreamRequest,
    deadline: Instant,
) -> Result<v1::DeleteStreamResponse, Refusal> {
    let stream = request::name("name", StreamName::new(request.name))?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: DeleteStream { stream },
    };
    let reply::Deleted { is_found } = context.gateway.submit(command, deadline).await?;
    Ok(v1::DeleteStreamResponse { deleted: is_found })
}
