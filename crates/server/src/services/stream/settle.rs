//! Acknowledging records, giving them back, keeping them longer (A31).
//!
//! A take and the ids of its records are natural keys: each call can be sent again.

use super::name::{group, record_ids};
use crate::context::Context;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::ConsumerName;
use flotilla_engine::limits::LEASE_MS_MAX;
use flotilla_engine::reply::RecordsSettled;
use flotilla_engine::{AckRecords, Command, NackRecords, Operation, TakeId, TouchRecords};
use tokio::time::Instant;

/// Serves `AckRecords`.
pub(super) async fn ack(
    context: &Context,
    asked: v1::AckRecordsRequest,
    deadline: Instant,
) -> Result<v1::AckRecordsResponse, Refusal> {
    let body = AckRecords {
        group: group(asked.stream, asked.group)?,
        consumer: request::name(ConsumerName::new(asked.consumer))?,
        take: TakeId(asked.take_id),
        records: record_ids(&asked.ids)?,
    };
    let settled_count = settled(context, (&asked.namespace, body), deadline).await?;
    Ok(v1::AckRecordsResponse { settled_count })
}

/// Serves `NackRecords`.
pub(super) async fn nack(
    context: &Context,
    asked: v1::NackRecordsRequest,
    deadline: Instant,
) -> Result<v1::NackRecordsResponse, Refusal> {
    request::within("delay_ms", asked.delay_ms, 0..=LEASE_MS_MAX)?;
    let body = NackRecords {
        group: group(asked.stream, asked.group)?,
        consumer: request::name(ConsumerName::new(asked.consumer))?,
        take: TakeId(asked.take_id),
        records: record_ids(&asked.ids)?,
        delay_ms: asked.delay_ms,
    };
    let settled_count = settled(context, (&asked.namespace, body), deadline).await?;
    Ok(v1::NackRecordsResponse { settled_count })
}

async fn settled(
    context: &Context,
    (namespace, body): (&str, impl Operation<Reply = RecordsSettled>),
    deadline: Instant,
) -> Result<u32, Refusal> {
    let command = Command::new(request::namespace(namespace)?, body);
    let settled = context.gateway.submit(command, deadline).await?;
    Ok(settled.count)
}

/// Serves `TouchRecords`.
pub(super) async fn touch(
    context: &Context,
    asked: v1::TouchRecordsRequest,
    deadline: Instant,
) -> Result<v1::TouchRecordsResponse, Refusal> {
    request::within("extend_ms", asked.extend_ms, 1..=LEASE_MS_MAX)?;
    let body = TouchRecords {
        group: group(asked.stream, asked.group)?,
        consumer: request::name(ConsumerName::new(asked.consumer))?,
        take: TakeId(asked.take_id),
        records: record_ids(&asked.ids)?,
        extend_ms: asked.extend_ms,
    };
    let command = Command::new(request::namespace(&asked.namespace)?, body);
    let touched = context.gateway.submit(command, deadline).await?;
    Ok(v1::TouchRecordsResponse {
        ack_due_at_ms: touched.expires_at_ms,
    })
}
