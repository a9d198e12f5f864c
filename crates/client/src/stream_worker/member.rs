//! The worker as a consumer of its group, with all calls that it makes as one.

use super::builder::Setup;
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use crate::period::millis;
use flotilla_api::v1;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The worker as a consumer of its group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) client: Client,
    pub(super) setup: Arc<Setup>,
    pub(super) incarnation: u64,
    /// Whether it has joined once: from then on it does not take over its name from another
    /// process.
    has_joined: AtomicBool,
}

impl Member {
    /// The member of a process that has just started.
    pub(super) fn new(client: Client, setup: Arc<Setup>) -> Self {
        Self {
            client,
            setup,
            incarnation: rand::random(),
            has_joined: AtomicBool::new(false),
        }
    }

    /// Adds the worker to the registry (A20).
    pub(super) async fn register(&self) -> Result<(), ClientError> {
        let request = v1::RegisterRequest {
            incarnation: self.incarnation,
            ..self.setup.record()
        };
        self.client.register_worker(request).await?;
        Ok(())
    }

    /// Sends a heartbeat with the number of records that the worker holds.
    pub(super) async fn heartbeat(&self, load: u32) -> Result<v1::WorkerStatus, ClientError> {
        let request = v1::HeartbeatRequest {
            worker_id: self.setup.worker_id.clone(),
            incarnation: self.incarnation,
            current_load: load,
            ..v1::HeartbeatRequest::default()
        };
        Ok(self.client.heartbeat_worker(request).await?.status())
    }

    /// Joins the group or renews its membership. A renewal is refused if a newer process has the
    /// consumer name (`consumer_replaced`).
    pub(super) async fn join(&self) -> Result<v1::JoinGroupResponse, ClientError> {
        let request = v1::JoinGroupRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            incarnation: self.incarnation,
            worker_id: self.setup.worker_id.clone(),
            create: Some(v1::GroupSettings::default()),
            renewal: self.has_joined.load(Ordering::Relaxed),
            ..v1::JoinGroupRequest::default()
        };
        let joined = self.client.join_group(request).await?;
        self.has_joined.store(true, Ordering::Relaxed);
        Ok(joined)
    }

    /// Waits for records. A repeated call with the same id returns the same ones.
    pub(super) async fn take(
        &self,
        take_id: u64,
        limit: u32,
    ) -> Result<Vec<v1::Delivery>, ClientError> {
        let block = self.setup.block;
        let request = v1::TakeRecordsRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            take_id,
            limit,
            block_ms: Some(millis(block)),
            incarnation: self.incarnation,
            ..v1::TakeRecordsRequest::default()
        };
        let client = self.client.with_timeout(self.client.timeout() + block);
        Ok(client.take_records(request).await?.deliveries)
    }

    /// Acknowledges a record, however long it takes; returns whether the record was in flight.
    pub(super) async fn ack(&self, take_id: u64, id: &str) -> Result<bool, ClientError> {
        let request = v1::AckRecordsRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            take_id,
            ids: vec![id.to_owned()],
            ..v1::AckRecordsRequest::default()
        };
        let acked = persist(|| self.client.ack_records(request.clone())).await?;
        Ok(acked.acked_count > 0)
    }

    /// Returns a record, however long it takes; returns whether the record was in flight.
    pub(super) async fn nack(
        &self,
        take_id: u64,
        id: &str,
        delay: Duration,
    ) -> Result<bool, ClientError> {
        let request = v1::NackRecordsRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            take_id,
            ids: vec![id.to_owned()],
            delay_ms: millis(delay),
            ..v1::NackRecordsRequest::default()
        };
        let given_back = persist(|| self.client.nack_records(request.clone())).await?;
        Ok(given_back.nacked_count > 0)
    }

    /// Extends the ack deadline of a record.
    pub(super) async fn touch(
        &self,
        take_id: u64,
        id: &str,
        extend: Duration,
    ) -> Result<(), ClientError> {
        let request = v1::TouchRecordsRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            take_id,
            ids: vec![id.to_owned()],
            extend_ms: millis(extend),
            ..v1::TouchRecordsRequest::default()
        };
        self.client.touch_records(request).await?;
        Ok(())
    }

    /// Leaves the group and the registry, each if it can be reached within the time.
    pub(super) async fn leave(&self, timeout: Duration) {
        let client = self.client.with_timeout(timeout);
        let leaving = v1::LeaveGroupRequest {
            stream: self.setup.stream.clone(),
            group: self.setup.group.clone(),
            consumer: self.setup.consumer.clone(),
            incarnation: Some(self.incarnation),
            ..v1::LeaveGroupRequest::default()
        };
        if let Err(error) = client.leave_group(leaving).await
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(worker = self.setup.worker_id, %error, "could not leave the group");
        }
        let deregistration = v1::DeregisterRequest {
            worker_id: self.setup.worker_id.clone(),
            incarnation: Some(self.incarnation),
            ..v1::DeregisterRequest::default()
        };
        if let Err(error) = client.deregister_worker(deregistration).await {
            tracing::warn!(worker = self.setup.worker_id, %error, "could not deregister");
        }
    }
}

/// Retries a call until its response is final.
pub(super) async fn persist<A, F>(mut call: impl FnMut() -> F) -> Result<A, ClientError>
where
    F: Future<Output = Result<A, ClientError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match call().await {
            Err(error) if error.is_passing() => {
                tracing::info!(%error, "retrying");
                sleep(backoff.next_delay()).await;
            }
            answer => return answer,
        }
    }
}
