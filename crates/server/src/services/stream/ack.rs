//! Acks, nacks and touches records (A31).
//!
//! A take id and the record ids are natural keys: each call can be retried.

use super::name::{group, record_ids};
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ConsumerName, Namespace};
use flotilla_engine::limits::LEASE_MS_MAX;
use flotilla_engine::reply::DeliveriesEnded;
use flotilla_engine::{AckRecords, Command, NackRecords, Operation, TakeId, TouchRecords};
use tokio::time::Instant;

/// Serves `AckRecords`.
pub(super) async fn ack(
    context: &CallContext,
    request: v1::AckRecordsRequest,
    deadline: Instant,
) -> Result<v1::AckRecordsResponse, Refusal> {
    let body = AckRecords {
        group: group(request.stream, request.group)?,
        consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
        take: TakeId(request.take_id),
        records: record_ids(&request.ids)?,
    };
    let acked_count = submit_ack(context, &request.namespace, body, deadline).await?;
    Ok(v1::AckRecordsResponse { acked_count })
}

/// Serves `NackRecords`.
pub(super) async fn nack(
    context: &CallContext,
    request: v1::NackRecordsRequest,
    deadline: Instant,
) -> Result<v1::NackRecordsResponse, Refusal> {
    request::within("delay_ms", request.delay_ms, 0..=LEASE_MS_MAX)?;
    let body = NackRecords {
        group: group(request.stream, request.group)?,
        consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
        take: TakeId(request.take_id),
        records: record_ids(&request.ids)?,
        delay_ms: request.delay_ms,
    };
    let nacked_count = submit_ack(context, &request.namespace, body, deadline).await?;
    Ok(v1::NackRecordsResponse { nacked_count })
}

async fn submit_ack(
    context: &CallContext,
    namespace: &str,
    body: impl Operation<Scope = Namespace, Reply = DeliveriesEnded>,
    deadline: Instant,
) -> Result<u32, Refusal> {
    let command = Command::new(request::namespace(namespace)?, body);
    let settled = context.gateway.submit(command, deadline).await?;
    Ok(settled.count)
}

/// Serves `TouchRecords`.
pub(super) async fn touch(
    context: &CallContext,
    request: v1::TouchRecordsRequest,
    deadline: Instant,
) -> Result<v1::TouchRecordsResponse, Refusal> {
    request::within("extend_ms", request.extend_ms, 1..=LEASE_MS_MAX)?;
    let body = TouchRecords {
        group: group(request.stream, request.group)?,
        consumer: request::name("consumer", ConsumerName::new(request.consumer))?,
        take: TakeId(request.take_id),
        records: record_ids(&request.ids)?,
        extend_ms: request.extend_ms,
    };
    let command = Command::new(request::namespace(&request.namespace)?, body);
    let touched = context.gateway.submit(command, deadline).await?;
    Ok(v1::TouchRecordsResponse {
        ack_deadline_at_ms: touched.expires_at_ms,
    })
}
