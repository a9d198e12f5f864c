//! One task of an embedded worker, from its assignment to the response to its report.

use super::decided::decided;
use super::lease::Lease;
use super::slots::SlotTicket;
use super::verdict;
use super::{COMMAND_DEADLINE, Shared};
use crate::errors::Refusal;
use crate::traces::TracedTask;
use flotilla_api::v1;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{Body, RejectionCode, Reply, TaskToken, TouchTask};
use std::future::pending;
use std::time::Duration;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One task of an embedded worker.
pub(super) struct Job {
    pub(super) shared: Shared,
    pub(super) namespace: Namespace,
    pub(super) token: TaskToken,
}

/// Whether a touch was refused because the task is cancelled: the step waits for a report.
fn is_cancelled(refusal: &Refusal) -> bool {
    refusal.reason() == RejectionCode::TaskCancelled.as_str()
}

impl Job {
    /// Runs the task, keeps its lease meanwhile, and reports it. A task that is cancelled meanwhile stops, and that is
    /// reported.
    pub(super) async fn run(
        self,
        task: v1::TaskAssignment,
        ticket: SlotTicket,
        cancellation: CancellationToken,
    ) {
        let gateway = self.shared.context.node_gateway.of(&self.namespace);
        let lease = Lease::of(&task, gateway.replica().now_ms());
        let length = lease.length();
        tokio::select! {
            biased;
            () = self.work(task, ticket, &cancellation) => {}
            refusal = lease.keep(|| self.touch_unless_cancelled(length, &cancellation)) => {
                tracing::info!(task = self.token.task_id(), %refusal, "an embedded worker lost a task");
            }
        }
    }

    /// Reports that the task was dropped; otherwise it would stay leased for nothing.
    pub(super) async fn fail(self, panic: JoinError) {
        tracing::error!(task = self.token.task_id(), %panic, "an embedded worker dropped a task");
        self.report(verdict::of_panic(self.token, &panic)).await;
    }

    async fn work(
        &self,
        task: v1::TaskAssignment,
        ticket: SlotTicket,
        cancellation: &CancellationToken,
    ) {
        let traced = TracedTask::begin(&self.shared.context, &task);
        let runner = &self.shared.runner;
        let report = tokio::select! {
            biased;
            called = runner.run(&self.namespace, self.token, task, ticket) => {
                verdict::of_call(self.token, called)
            }
            () = cancellation.cancelled() => verdict::of_cancel(self.token),
        };
        if let Some(traced) = traced {
            traced.end(&report);
        }
        self.report(report).await;
    }

    /// Reports until the cluster has responded; the token makes retries safe (design rule 9).
    async fn report(&self, body: Body) {
        if let Err(refusal) = decided(|| self.submit(body.clone())).await {
            tracing::info!(%refusal, "a report of an embedded worker came too late");
        }
    }

    /// Extends the lease. If the task is cancelled, its call is stopped, and the lease stays as it is.
    async fn touch_unless_cancelled(
        &self,
        extension: Duration,
        cancellation: &CancellationToken,
    ) -> Result<(), Refusal> {
        match self.touch(extension).await {
            Err(refusal) if is_cancelled(&refusal) => {
                cancellation.cancel();
                pending().await
            }
            touched => touched,
        }
    }

    async fn touch(&self, extension: Duration) -> Result<(), Refusal> {
        let extend_ms = u64::try_from(extension.as_millis()).unwrap_or(u64::MAX);
        let token = self.token;
        let touched = self.submit(Body::TouchTask(TouchTask { token, extend_ms }));
        touched.await.map(drop)
    }

    async fn submit(&self, body: Body) -> Result<Reply, Refusal> {
        let command = body.into_command(self.namespace.clone());
        let deadline = Instant::now() + COMMAND_DEADLINE;
        let gateway = &self.shared.context.node_gateway;
        gateway.submit(command, deadline).await
    }
}
