//! A task as its handler sees it.

use super::HandlerError;
use super::lease::Lease;
use crate::client::Client;
use crate::error::ClientError;
use bytes::Bytes;
use flotilla_api::v1;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A task as its handler sees it.
#[derive(Clone, Debug)]
pub struct ActionContext {
    client: Client,
    task: Arc<v1::TaskAssignment>,
    lease: Arc<Lease>,
    cancellation: CancellationToken,
}

impl ActionContext {
    pub(super) fn new(
        client: Client,
        task: Arc<v1::TaskAssignment>,
        lease: Arc<Lease>,
        cancellation: CancellationToken,
    ) -> Self {
        Self {
            client,
            task,
            lease,
            cancellation,
        }
    }

    /// The input, decoded from JSON.
    ///
    /// # Errors
    /// Of kind *non-retryable*, code `input_invalid`, if the input has another shape: it would be
    /// the same in the next attempt.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        serde_json::from_slice(&self.task.input).map_err(|error| {
            let message = format!("expected an input that the handler can decode, but {error}");
            HandlerError::non_retryable(message).with_code("input_invalid")
        })
    }

    /// The input as JSON text.
    #[must_use]
    pub fn input(&self) -> &Bytes {
        &self.task.input
    }

    /// Sets the end of the task's lease to this many milliseconds from now.
    ///
    /// Rarely needed: the worker extends the lease while the handler runs (A4a).
    ///
    /// # Errors
    /// `Usage` for an extension that the cluster does not grant. If the lease is lost there is no
    /// error: the handler is dropped.
    pub async fn touch(&self, extend_ms: u64) -> Result<(), ClientError> {
        self.lease.touch(Duration::from_millis(extend_ms)).await
    }

    /// Adds an info entry, a JSON object of at most 64 KiB, to the run that the task belongs to, for
    /// example about its progress (W92). Returns the number of the entry among those of the run.
    ///
    /// # Errors
    /// `task_without_run` for a stand-alone action run, `run_ended`, or another refusal of the
    /// cluster. Usually, a handler should continue without the entry.
    pub async fn add_info(&self, content: &Value) -> Result<u32, ClientError> {
        let request = v1::AddTaskInfoRequest {
            task_token: self.task.task_token.clone(),
            content: content.to_string().into(),
            ..v1::AddTaskInfoRequest::default()
        };
        let added = self.client.add_task_info(request).await?;
        Ok(added.number)
    }

    /// The task's id, unique to the attempt.
    #[must_use]
    pub fn task_id(&self) -> &str {
        &self.task.task_id
    }

    /// The token with which to report on the attempt.
    #[must_use]
    pub fn task_token(&self) -> &str {
        &self.task.task_token
    }

    /// The id of the action run, the same for all its attempts.
    #[must_use]
    pub fn action_run_id(&self) -> &str {
        &self.task.action_run_id
    }

    /// The action that was invoked.
    #[must_use]
    pub fn action_name(&self) -> &str {
        &self.task.action
    }

    /// The attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// When the action run was created, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn created_at_ms(&self) -> u64 {
        self.task.created_at_ms
    }

    /// The workflow run that the task belongs to; `None` for a stand-alone action run.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        self.task.run_id.as_deref()
    }

    /// The step that the task belongs to; `None` for a stand-alone action run.
    #[must_use]
    pub fn step(&self) -> Option<&str> {
        self.task.step.as_deref()
    }

    /// Whether the task can be [accepted](crate::ActionResult::accepted), so that its outcome comes
    /// later (W38, W75).
    #[must_use]
    pub fn can_accept(&self) -> bool {
        self.task.can_accept
    }

    /// How long after its acceptance the outcome may be reported; `None` without a limit, or if the
    /// task cannot be accepted.
    #[must_use]
    pub fn report_timeout(&self) -> Option<Duration> {
        self.task.report_timeout_ms.map(Duration::from_millis)
    }

    /// The URL at which the outcome of the accepted task may be reported over HTTP.
    #[must_use]
    pub fn report_url(&self) -> &str {
        &self.task.report_url
    }

    /// The span of the task's step, as a W3C Trace Context `traceparent` header; `None` if the step
    /// is not traced.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.task.traceparent.as_deref()
    }

    /// The labels of the action run (A3).
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.task.labels
    }

    /// Cancelled when the task is over, however it ends. An abandoned handler is dropped; the token
    /// is for what it has spawned.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}
