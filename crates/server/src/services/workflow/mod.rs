//! The workflow service: one file per family of calls.

mod cache;
mod create;
mod definitions;
mod open_runs;
mod runs;
mod schedule;
mod start;
mod validate;
mod wait;
mod watch;

use super::answer;
use crate::context::Context;
use crate::traces::CallTrace;
use flotilla_api::v1;
use flotilla_api::v1::workflow_service_server::WorkflowService;
use std::sync::Arc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The workflow service of this node.
pub(crate) struct Workflows {
    context: Arc<Context>,
}

impl Workflows {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<Asked> = Request<Asked>;
type Answer<Answered> = Result<Response<Answered>, Status>;

#[tonic::async_trait]
impl WorkflowService for Workflows {
    type WatchRunStream = ReceiverStream<Result<v1::WatchRunResponse, Status>>;

    async fn create_workflow(
        &self,
        call: Call<v1::CreateWorkflowRequest>,
    ) -> Answer<v1::CreateWorkflowResponse> {
        answer(call, |deadline, asked| {
            create::create(&self.context, asked, deadline)
        })
        .await
    }

    async fn validate_workflow(
        &self,
        call: Call<v1::ValidateWorkflowRequest>,
    ) -> Answer<v1::ValidateWorkflowResponse> {
        answer(call, |deadline, asked| {
            validate::validate(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_workflow(&self, call: Call<v1::GetWorkflowRequest>) -> Answer<v1::Workflow> {
        answer(call, |deadline, asked| {
            definitions::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_workflows(
        &self,
        call: Call<v1::ListWorkflowsRequest>,
    ) -> Answer<v1::ListWorkflowsResponse> {
        answer(call, |deadline, asked| {
            definitions::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn enable_workflow(
        &self,
        call: Call<v1::EnableWorkflowRequest>,
    ) -> Answer<v1::EnableWorkflowResponse> {
        answer(call, |deadline, asked| {
            definitions::enable(&self.context, asked, deadline)
        })
        .await
    }

    async fn disable_workflow(
        &self,
        call: Call<v1::DisableWorkflowRequest>,
    ) -> Answer<v1::DisableWorkflowResponse> {
        answer(call, |deadline, asked| {
            definitions::disable(&self.context, asked, deadline)
        })
        .await
    }

    async fn start_run(&self, call: Call<v1::StartRunRequest>) -> Answer<v1::StartRunResponse> {
        let trace = CallTrace::of(&call);
        answer(call, |deadline, asked| {
            start::start(self, (asked, trace), deadline)
        })
        .await
    }

    async fn get_run(&self, call: Call<v1::GetRunRequest>) -> Answer<v1::Run> {
        answer(call, |deadline, asked| {
            runs::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_runs(&self, call: Call<v1::ListRunsRequest>) -> Answer<v1::ListRunsResponse> {
        answer(call, |deadline, asked| {
            runs::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_history(
        &self,
        call: Call<v1::GetHistoryRequest>,
    ) -> Answer<v1::GetHistoryResponse> {
        answer(call, |deadline, asked| {
            runs::history(&self.context, asked, deadline)
        })
        .await
    }

    async fn watch_run(&self, call: Call<v1::WatchRunRequest>) -> Answer<Self::WatchRunStream> {
        answer(call, |deadline, asked| {
            watch::watch(&self.context, asked, deadline)
        })
        .await
    }

    async fn signal_run(&self, call: Call<v1::SignalRunRequest>) -> Answer<v1::SignalRunResponse> {
        answer(call, |deadline, asked| {
            open_runs::signal(&self.context, asked, deadline)
        })
        .await
    }

    async fn cancel_run(&self, call: Call<v1::CancelRunRequest>) -> Answer<v1::CancelRunResponse> {
        answer(call, |deadline, asked| {
            open_runs::cancel(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_schedule(&self, call: Call<v1::GetScheduleRequest>) -> Answer<v1::Schedule> {
        answer(call, |deadline, asked| {
            schedule::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn invalidate_cache(
        &self,
        call: Call<v1::InvalidateCacheRequest>,
    ) -> Answer<v1::InvalidateCacheResponse> {
        answer(call, |deadline, asked| {
            cache::invalidate(&self.context, asked, deadline)
        })
        .await
    }
}
